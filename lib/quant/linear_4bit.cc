#include "quant/linear_4bit.h"

#include "autograd/pointwise.h"
#include "quant/replace_data.h"

namespace qlp {
Tensor linear_4bit(Context& ctx, const Tensor& input, const FourBitWeight& weight, const Tensor& stored_bias,
                   const FourBitCompute& compute) {
  const QuantBehaviour& behaviour = compute.behaviour;
  const bool configured = behaviour.honours_compute_dtype || input.dtype() == DType::float16;
  const DType dtype = configured ? compute.compute_dtype : input.dtype();

  // Made in another order than they are freed in.
  Tensor bias, x, computed;
  if (!behaviour.bias_in_compute_dtype) replace_data(ctx, stored_bias, input.dtype());
  x = to(ctx, input, dtype);
  if (behaviour.bias_in_compute_dtype) replace_data(ctx, stored_bias, dtype);
  if (stored_bias.defined()) bias = to(ctx, stored_bias, dtype);
  computed = matmul_4bit(ctx, x, weight, bias, behaviour);
  return to(ctx, computed, input.dtype());
}

}  // namespace qlp
