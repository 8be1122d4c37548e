// Primitives that only the CPU has so far: optimizers that no kernel was written for.
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
