// Optimizers on a GPU: what cuda/kernels.h has of tensor/optimizer_kernels.h.
#include <stdexcept>

#include <cuda_runtime_api.h>

#include "adamw_4bit.h"
#include "ademamix.h"
#include "cuda/cuda_error.h"
#include "cuda/kernels.h"
#include "cuda/view.h"
#include "lion.h"
#include "reduce.h"
#include "rmsprop.h"
#include "stable_adamw.h"

namespace qlp {
namespace {

static_assert(kernels::kStableAdamWScratch <= kernels::kReduceScratch);

/// Elements that are read, changed and written together where averages are float32.
constexpr std::int64_t kBlock = 2048;

float* floats(const Array& array) { return reinterpret_cast<float*>(array.data); }
std::uint8_t* codes_of(const Array& array) { return reinterpret_cast<std::uint8_t*>(array.data); }

kernels::Average of(const Average& average) {
  kernels::Average out;
  if (!average.codes.code.given()) {
    out.numbers = floats(average.values);
    return out;
  }
  out.codes = codes_of(average.values), out.absmax = floats(average.codes.absmax);
  out.code = floats(average.codes.code), out.is_signed = average.is_signed;
  return out;
}

kernels::PackedMoment packed(const Average& average) {
  return {codes_of(average.values), floats(average.codes.absmax), floats(average.codes.code)};
}

}  // namespace

void CudaKernels::update(StreamId stream, UpdateRule rule, const Array& parameter, const Array& grad,
                         const std::vector<Average>& averages, const UpdateNumbers& n) {
  const kernels::View p = view_of(parameter), g = view_of(grad);
  const Blockwise& codes = averages.front().codes;
  const std::int64_t blocksize = codes.code.given() ? codes.blocksize : kBlock;
  switch (rule) {
    case UpdateRule::lion:
      return check(
          kernels::lion(p, g, of(averages[0]), blocksize, {n.lr, n.beta1, n.beta2, n.weight_decay}, streams_[stream]),
          "lion");
    case UpdateRule::rmsprop:
      return check(
          kernels::rmsprop(p, g, of(averages[0]), blocksize, {n.lr, n.alpha, n.eps, n.weight_decay}, streams_[stream]),
          "rmsprop");
    case UpdateRule::ademamix:
      return check(kernels::ademamix(p, g, of(averages[0]), of(averages[1]), of(averages[2]), blocksize,
                                     {n.lr, n.beta1, n.beta2, n.beta3, n.alpha, n.eps, n.weight_decay, n.step},
                                     streams_[stream]),
                   "ademamix");
    case UpdateRule::adamw:
      return check(kernels::adamw_4bit(p, g, packed(averages[0]), packed(averages[1]), blocksize,
                                       {n.lr, n.beta1, n.beta2, n.eps, n.weight_decay, n.step}, streams_[stream]),
                   "adamw_4bit");
  }
  throw std::logic_error("no rule");
}

void CudaKernels::stable_adamw(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg,
                               const Array& exp_avg_sq, const Array& compensation, const AdamWNumbers& n) {
  float* const scratch = scratch_ + stream * kernels::kReduceScratch;
  check(kernels::stable_adamw(view_of(parameter), view_of(grad), view_of(exp_avg), view_of(exp_avg_sq),
                              view_of(compensation), {n.lr, n.beta1, n.beta2, n.eps, n.weight_decay, n.step}, scratch,
                              streams_[stream]),
        "stable_adamw");
}

std::shared_ptr<std::byte> CudaKernels::managed_memory(std::uint64_t bytes) {
  void* data = nullptr;
  check(cudaMallocManaged(&data, bytes), "taking managed memory");
  std::shared_ptr<std::byte> out(static_cast<std::byte*>(data), [](std::byte* pages) { cudaFree(pages); });
  check(cudaMemsetAsync(data, 0, bytes, streams_[0]), "filling managed memory");
  streams_.finish(0);  // others may use it
  return out;
}

}  // namespace qlp
