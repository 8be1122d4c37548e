#include "launch.cuh"
#include "numbers.cuh"
#include "reduce.h"

namespace qlp::kernels {
namespace {

/// NaN wins.
struct Greater {
  __device__ float operator()(float a, float b) const { return a > b || isnan(a) ? a : b; }
};

__device__ float taken(Reduce op, float x) {
  switch (op) {
    case Reduce::sum_of_squares:
      return x * x;
    case Reduce::max_abs:
      return fabsf(x);
    default:
      return x;
  }
}
__device__ float neutral(Reduce op) { return op == Reduce::max ? -INFINITY : 0.0F; }
__device__ float join(Reduce op, float a, float b) {
  return op == Reduce::max || op == Reduce::max_abs ? Greater()(a, b) : a + b;
}

/// Of a block's threads; all get it.
__device__ float joined(Reduce op, float value) {
  return op == Reduce::max || op == Reduce::max_abs ? join_block(value, -INFINITY, Greater())
                                                    : join_block(value, 0.0F, Sum());
}

/// The operand as [outputs, reduced]: its dimensions that stay, then those that are reduced.
struct Parted {
  View x;
  int kept;
  std::int64_t outputs, reduced;
};

/// `parts` blocks share the work on one result; what each has goes to scratch [outputs, parts], or is the result.
__global__ void reduce_kernel(Reduce op, View out, Parted in, float factor, std::int64_t parts, float* scratch) {
  const std::int64_t output = blockIdx.x / parts, part = blockIdx.x % parts;
  const std::int64_t base = offset_of(in.x, output, in.kept);
  View rest = in.x;
  rest.rank = in.x.rank - in.kept;
  for (int i = 0; i < rest.rank; ++i) rest.size[i] = in.x.size[in.kept + i], rest.stride[i] = in.x.stride[in.kept + i];
  float value = neutral(op);
  for (std::int64_t i = part * kThreads + threadIdx.x; i < in.reduced; i += parts * kThreads)
    value = join(op, value, taken(op, load<float>(rest.data, rest.type, base + offset_of(rest, i, rest.rank))));
  value = joined(op, value);
  if (threadIdx.x != 0) return;
  if (parts > 1)
    scratch[blockIdx.x] = value;
  else
    store_at(out, output, value * factor);
}

/// A block for each result.
__global__ void join_parts(Reduce op, View out, float factor, std::int64_t parts, const float* scratch) {
  float value = neutral(op);
  for (std::int64_t i = threadIdx.x; i < parts; i += kThreads) value = join(op, value, scratch[blockIdx.x * parts + i]);
  value = joined(op, value);
  if (threadIdx.x == 0) store_at(out, static_cast<std::int64_t>(blockIdx.x), value * factor);
}

constexpr std::int64_t kWorthABlock = 4096;  ///< numbers for a block to reduce

}  // namespace

cudaError_t reduce(Reduce op, const View& out, const View& x, double factor, float* scratch, cudaStream_t stream) {
  Parted in{x, 0, 1, 1};
  in.x.rank = 0;
  for (const bool stays : {true, false}) {
    for (int i = 0; i < x.rank; ++i) {
      if ((out.size[i] == x.size[i]) != stays) continue;
      in.x.size[in.x.rank] = x.size[i], in.x.stride[in.x.rank] = x.stride[i];
      ++in.x.rank;
      (stays ? in.outputs : in.reduced) *= x.size[i];
    }
    if (stays) in.kept = in.x.rank;
  }
  std::int64_t parts = (in.reduced + kWorthABlock - 1) / kWorthABlock;
  if (in.outputs > 0 && parts > kReduceScratch / in.outputs) parts = kReduceScratch / in.outputs;
  if (parts < 1) parts = 1;
  const auto number = static_cast<float>(factor);
  const cudaError_t status =
      launch(reduce_kernel, in.outputs * parts, kThreads, stream, op, out, in, number, parts, scratch);
  if (status != cudaSuccess || parts == 1) return status;
  return launch(join_parts, in.outputs, kThreads, stream, op, out, number, parts, scratch);
}

}  // namespace qlp::kernels
