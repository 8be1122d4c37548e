// Primitives that only the CPU has so far: what mixtures of experts and LLM.int8 need beside those of every device.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "tensor/context.h"
#include "tensor/kernels.h"

namespace qlp {

/// What bitsandbytes' optimizers beside AdamW make of a parameter (csrc/kernels.cu, kOptimizer32bit1State and the
/// like).
enum class BnbRule : std::uint8_t { lion, rmsprop, ademamix };

/// Averages lie as their parameter does, in float32, or in codes with statistics. AdEMAMix's first state holds two, one
/// behind the other; `second` is its alone.
struct BnbState {
  Array first, second;
  Blockwise first_codes, second_codes;  ///< without a code: float32
};

struct BnbNumbers {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, beta3 = 0.9999, alpha = 5, eps = 1e-8;
  std::int64_t step = 1;  ///< of this parameter, from 1
};

class ReferenceKernels {
 public:
  ReferenceKernels() = default;
  ReferenceKernels(const ReferenceKernels&) = delete;
  ReferenceKernels& operator=(const ReferenceKernels&) = delete;
  virtual ~ReferenceKernels() = default;

  /// values and indices [.., k] of int64: the greatest of each row of x [.., n], greatest first; of equal ones the
  /// first.
  virtual void topk(const Array& values, const Array& indices, const Array& x) = 0;
  /// out [.., k] = x [.., n] at indices [.., k].
  virtual void gather_last(const Array& out, const Array& x, const Array& indices) = 0;
  /// out [.., n] = 0, but values [.., k] at indices [.., k].
  virtual void scatter_last(const Array& out, const Array& values, const Array& indices) = 0;
  /// values [n] ascending, and where in x [n] they were; equal ones stay in their order. All of int64.
  virtual void sort(const Array& values, const Array& order, const Array& x) = 0;
  /// out = x / divisor, without what is left over. Both of int64.
  virtual void divide(const Array& out, const Array& x, std::int64_t divisor) = 0;
  /// counts and ends [e]: how many of the ascending keys [n] are 0, 1, ..., and where each kind ends. All of int32.
  virtual void count_groups(const Array& counts, const Array& ends, const Array& keys) = 0;
  /// Rows of a [S, K], in groups that end at ends [e], each with its matrix of b [e, K, N]: out [S, N].
  virtual void grouped_gemm(const Array& out, const Array& a, const Array& b, const Array& ends) = 0;
  /// out [e, M, N]: for each group the transpose of its rows of a [S, M] times those of b [S, N].
  virtual void grouped_outer(const Array& out, const Array& a, const Array& b, const Array& ends) = 0;

  /// scales [n]: the greatest absolute value of each row of x [n, k]; out of int8 = round(127 x / scale)
  /// (bitsandbytes csrc/kernels.cu, kInt8VectorQuant).
  virtual void quantize_rows_8bit(const Array& out, const Array& scales, const Array& x) = 0;

  virtual void bnb_update(BnbRule rule, const Array& parameter, const Array& grad, const BnbState& state,
                          const BnbNumbers& numbers) = 0;
  /// optimi.StableAdamW: `compensation` [like the parameter, or one byte] has what 16 bits lose in rounding.
  virtual void stable_adamw(const Array& parameter, const Array& grad, const Array& exp_avg, const Array& exp_avg_sq,
                            const Array& compensation, const AdamWNumbers& numbers) = 0;
};

/// Those for tensors that are where this one is; none on the dry device. A device that computes and has none must have
/// refused the run (check_can_compute).
inline ReferenceKernels* reference_kernels(const Context& ctx, const Tensor& on) {
  Kernels* const kernels = ctx.kernels(on);
  if (!kernels) return nullptr;
  auto* const reference = dynamic_cast<ReferenceKernels*>(kernels);
  if (!reference) throw std::logic_error("a primitive that this device does not have");
  return reference;
}

}  // namespace qlp
