// Primitives of optimizers beside AdamW, which devices have beside those of tensor/kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tensor/context.h"
#include "tensor/kernels.h"

namespace qlp {

/// What an optimizer makes of a parameter, its gradient and the averages that it keeps of it:
enum class UpdateRule : std::uint8_t {
  lion,      ///< bitsandbytes' (csrc/kernels.cu, kOptimizer32bit1State and the like): one average
  rmsprop,   ///< the same
  ademamix,  ///< the same: a fast and a slow average, and one of squares
  adamw,     ///< torchao's (optim/adam.py, single_param_adam): of gradients, and of squares
};

/// One number for each element of a parameter, dense: in float32; as codes of 256 values; or as codes of 16 values, two
/// in a byte, the first in the high half. `codes` without a code: float32.
struct Average {
  Array values;
  Blockwise codes;
  bool is_signed = true;
};

struct UpdateNumbers {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, beta3 = 0.9999, alpha = 5, eps = 1e-8, weight_decay = 0;
  std::int64_t step = 1;  ///< of this parameter, from 1
};

class OptimizerKernels {
 public:
  OptimizerKernels() = default;
  OptimizerKernels(const OptimizerKernels&) = delete;
  OptimizerKernels& operator=(const OptimizerKernels&) = delete;
  virtual ~OptimizerKernels() = default;

  /// All averages in the same kind of codes. Those of adamw: two in a byte, in blocks that the elements are a multiple
  /// of; those of the others never.
  virtual void update(StreamId stream, UpdateRule rule, const Array& parameter, const Array& grad,
                      const std::vector<Average>& averages, const UpdateNumbers& numbers) = 0;
  /// optimi.StableAdamW: `compensation` [like the parameter, or one byte] has what 16 bits lose in rounding.
  virtual void stable_adamw(StreamId stream, const Array& parameter, const Array& grad, const Array& exp_avg,
                            const Array& exp_avg_sq, const Array& compensation, const AdamWNumbers& numbers) = 0;
  /// Zeros that move between the device and the host as they are used (cudaMallocManaged), for as long as they are
  /// held.
  virtual std::shared_ptr<std::byte> managed_memory(std::uint64_t bytes) = 0;
};

/// Those for tensors that are where this one is; none on the dry device.
inline OptimizerKernels* optimizer_kernels(const Context& ctx, const Tensor& on) {
  Kernels* const kernels = ctx.kernels(on);
  if (!kernels) return nullptr;
  auto* const optimizers = dynamic_cast<OptimizerKernels*>(kernels);
  if (!optimizers) throw std::logic_error("a primitive that this device does not have");
  return optimizers;
}

}  // namespace qlp
