// torch.nn.functional.linear as DeepSpeed replaces it under zero.Init (deepspeed/runtime/zero/linear.py, 0.18.3).
#pragma once

#include "autograd/saved_tensor.h"

namespace qlp {

/// While it stands innermost in Context::saved_hooks, linear() is linear_for_zero3(). What is saved is kept as it is.
class Zero3LinearFunction final : public SavedTensorHooks {
 public:
  Ref<PackedTensor> pack(Context& ctx, const Tensor& tensor) override;
};

/// LinearFunctionForZeroStage3: one node for both products and the sum, which keeps the weight itself and not a view of
/// what it holds.
Tensor linear_for_zero3(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace qlp
