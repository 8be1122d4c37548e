#include "rmsprop.h"
#include "update_by_blocks.cuh"

namespace qlp::kernels {
namespace {

struct RmsProp {
  static constexpr int kAverages = 1;
  float lr, alpha, one_minus_alpha, eps, weight_decay;

  __device__ float operator()(float p, float g, float (&average)[kAverages]) const {
    g += p * weight_decay;
    average[0] = average[0] * alpha + one_minus_alpha * g * g;
    return p - lr * (g / (sqrtf(average[0]) + eps));
  }
};

}  // namespace

cudaError_t rmsprop(const View& parameter, const View& grad, const Average& square_avg, std::int64_t blocksize,
                    const RmsPropNumbers& n, cudaStream_t stream) {
  const RmsProp rule{static_cast<float>(n.lr), static_cast<float>(n.alpha), static_cast<float>(1.0 - n.alpha),
                     static_cast<float>(n.eps), static_cast<float>(n.weight_decay)};
  return update_by_blocks(parameter, grad, Averages<1>{{square_avg}}, blocksize, rule, stream);
}

}  // namespace qlp::kernels
