// Matrix products that autograd records, with the cuBLAS workspace that the first one of a thread takes.
#pragma once

#include "autograd/node.h"

namespace qlp {

/// F.linear: x [..., K] with weight [N, K] and bias [N] or none, in the low precision dtype under autocast.
Tensor linear(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// Batched product of [B, H, M, K] and [B, H, K, N], as torch.matmul runs it.
Tensor batched_matmul(Context& ctx, const Tensor& a, const Tensor& b);

/// torch.mm of matrices that are in the dtype they are multiplied in.
Tensor mm(Context& ctx, const Tensor& a, const Tensor& b);

/// A product outside of autograd that sums over `inner` elements: a new tensor of `shape`.
Tensor gemm(Context& ctx, const Shape& shape, std::int64_t inner, DType dtype, Op op = Op::mm);
/// The same into memory that is there already.
void gemm_into(Context& ctx, const Shape& shape, std::int64_t inner, DType dtype);

}  // namespace qlp
