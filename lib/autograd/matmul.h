// Matrix products that autograd records, with the cuBLAS workspace that the first one of a thread takes.
#pragma once

#include "autograd/node.h"

namespace qlp {

/// F.linear: x [..., K] with weight [N, K] and bias [N] or none, in the low precision dtype under autocast. `summands`:
/// results that are summed, each of which has as large a part of the bias.
Tensor linear(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias = {}, std::int64_t summands = 1);
/// Batched product of [B, H, M, K] and [B, H, K, N], as torch.matmul runs it.
Tensor batched_matmul(Context& ctx, const Tensor& a, const Tensor& b);

/// torch.mm of matrices that are in the dtype they are multiplied in.
Tensor mm(Context& ctx, const Tensor& a, const Tensor& b);

/// A matrix in a product: a tensor as rows of its last dimension, or its transpose; or a stack of such.
struct Operand {
  const Tensor& tensor;
  bool turned = false;
  bool stacked = false;  ///< [batch, rows, columns]

  std::int64_t rows() const { return turned ? tensor.size(-1) : lines(); }
  std::int64_t columns() const { return turned ? lines() : tensor.size(-1); }

 private:
  std::int64_t lines() const {
    if (stacked) return tensor.size(-2);
    return tensor.size(-1) ? tensor.numel() / tensor.size(-1) : 0;
  }
};

/// A product outside of autograd: a new tensor [rows, columns], or a stack of those, of `dtype`.
Tensor gemm(Context& ctx, const Operand& a, const Operand& b, DType dtype, Op op = Op::mm);
/// The same into memory that is there already; `beta` times what is in it is added.
void gemm_into(Context& ctx, const Tensor& out, const Operand& a, const Operand& b, double beta = 0);

}  // namespace qlp
