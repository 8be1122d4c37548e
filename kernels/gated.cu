#include "activations.cuh"
#include "gated.h"
#include "launch.cuh"
#include "numbers.cuh"

namespace qlp::kernels {
namespace {

__global__ void forward(View out, View gate, View up, bool gelu, std::int64_t count) {
  const std::int64_t i = this_item();
  if (i >= count) return;
  const float g = load_at<float>(gate, i);
  store_at(out, i, (gelu ? gelu_tanh(g) : silu(g)) * load_at<float>(up, i));
}

__global__ void backward(View gate, View up, View grad, bool gelu, std::int64_t count) {
  const std::int64_t i = this_item();
  if (i >= count) return;
  const float g = load_at<float>(gate, i), u = load_at<float>(up, i), d = load_at<float>(grad, i);
  store_at(gate, i, d * u * (gelu ? gelu_tanh_slope(g) : silu_slope(g)));
  store_at(up, i, d * (gelu ? gelu_tanh(g) : silu(g)));
}

}  // namespace

cudaError_t gated_product(View out, View gate, View up, bool gelu, cudaStream_t stream) {
  View views[] = {out, gate, up};
  join_dimensions(views);
  return launch_over(out.numel(), forward, stream, views[0], views[1], views[2], gelu, out.numel());
}

cudaError_t gated_product_backward(View gate, View up, View grad, bool gelu, cudaStream_t stream) {
  View views[] = {gate, up, grad};
  join_dimensions(views);
  return launch_over(gate.numel(), backward, stream, views[0], views[1], views[2], gelu, gate.numel());
}

}  // namespace qlp::kernels
