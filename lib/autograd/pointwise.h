// Elementwise operations that autograd records. What each keeps and makes is what PyTorch's CUDA operation does
// (tools/autograd/derivatives.yaml, torch 2.4 to 2.14). Under autocast, pow and rsqrt run in float32.
#pragma once

#include "autograd/node.h"

namespace qlp {

Tensor add(Context& ctx, const Tensor& a, const Tensor& b);
/// a + scalar.
Tensor add_scalar(Context& ctx, const Tensor& a);
Tensor mul(Context& ctx, const Tensor& a, const Tensor& b);
/// a * scalar or a / scalar.
Tensor scale(Context& ctx, const Tensor& a, Op op = Op::mul);
/// a *= scalar: no new memory, but a node.
Tensor scale_in_place(Context& ctx, const Tensor& a);
Tensor div(Context& ctx, const Tensor& a, const Tensor& b);
Tensor neg(Context& ctx, const Tensor& a);
/// a ** 2
Tensor square(Context& ctx, const Tensor& a);
Tensor rsqrt(Context& ctx, const Tensor& a);
Tensor tanh(Context& ctx, const Tensor& a);
Tensor silu(Context& ctx, const Tensor& a);
Tensor gelu(Context& ctx, const Tensor& a);
/// The fused dropout of CUDA (0 < p < 1, training): keeps a mask of one byte per element.
Tensor dropout(Context& ctx, const Tensor& a);
/// a.to(dtype): the tensor itself if it has it already.
Tensor to(Context& ctx, const Tensor& a, DType dtype);
/// A copy in the same dtype (a.clone()).
Tensor clone(Context& ctx, const Tensor& a);

}  // namespace qlp
