// Elementwise operations that autograd records. What each keeps and makes is what PyTorch's CUDA operation does
// (tools/autograd/derivatives.yaml, torch 2.4 to 2.14). Under autocast, pow and rsqrt run in float32.
#pragma once

#include "autograd/node.h"

namespace qlp {

Tensor add(Context& ctx, const Tensor& a, const Tensor& b);
/// a += b: no new memory, but a node.
Tensor add_in_place(Context& ctx, const Tensor& a, const Tensor& b);
Tensor sub(Context& ctx, const Tensor& a, const Tensor& b);
/// a + addend, a number.
Tensor add_scalar(Context& ctx, const Tensor& a, double addend);
Tensor mul(Context& ctx, const Tensor& a, const Tensor& b);
/// a * factor, a number; where it is written as a quotient, under the name of that.
Tensor scale(Context& ctx, const Tensor& a, double factor, Op op = Op::mul);
/// a *= factor: no new memory, but a node.
Tensor scale_in_place(Context& ctx, const Tensor& a, double factor);
Tensor div(Context& ctx, const Tensor& a, const Tensor& b);
Tensor neg(Context& ctx, const Tensor& a);
/// a ** 2
Tensor square(Context& ctx, const Tensor& a);
Tensor rsqrt(Context& ctx, const Tensor& a);
Tensor tanh(Context& ctx, const Tensor& a);
Tensor sigmoid(Context& ctx, const Tensor& a);
Tensor silu(Context& ctx, const Tensor& a);
/// By tanh.
Tensor gelu(Context& ctx, const Tensor& a);
/// a.clamp(max=limit)
Tensor clamp_at_most(Context& ctx, const Tensor& a, double limit);
/// a.clamp(min=-limit, max=limit)
Tensor clamp_within(Context& ctx, const Tensor& a, double limit);
/// The fused dropout of CUDA (0 < p < 1, training): keeps a mask of one byte per element.
Tensor dropout(Context& ctx, const Tensor& a, double p);
/// a.to(dtype): the tensor itself if it has it already.
Tensor to(Context& ctx, const Tensor& a, DType dtype);
/// A copy in the same dtype (a.clone()).
Tensor clone(Context& ctx, const Tensor& a);

}  // namespace qlp
