// The largest of each row, sorting, and rows picked by index, as autograd records them.
#pragma once

#include "autograd/node.h"

namespace qlp {

struct TopK {
  Tensor values, indices;  ///< indices of int64
};
/// torch.topk(a, k, dim=-1)
TopK topk(Context& ctx, const Tensor& a, std::int64_t k);

struct Sorted {
  Tensor values, order;
};
/// torch.sort of a row of int64, which nobody differentiates.
Sorted sort(Context& ctx, const Tensor& a);

/// a[index]: rows of `a` [N, ...] by an `index` [S] of int64 give [S, ...]. The gradient is scattered, in sorted order.
Tensor index_rows(Context& ctx, const Tensor& a, const Tensor& index);

/// torch.empty_like(values) whose rows at `order` [N] of int64, a permutation, become `values` [N, ...].
Tensor put_rows(Context& ctx, const Tensor& values, const Tensor& order);
/// a.masked_fill(mask, 0), of rows by a `mask` [N, 1] of booleans; in place, or a copy.
Tensor mask_rows(Context& ctx, const Tensor& a, const Tensor& mask, bool in_place);

/// a.sum(dim=1) of [N, K, H]; float32 under autocast.
Tensor sum_middle(Context& ctx, const Tensor& a);
/// a.sum(dim=-1, keepdim=True) of a float32 `a`.
Tensor sum_last(Context& ctx, const Tensor& a);
/// a /= b, which keeps a copy of what `a` was where a gradient of `b` is wanted.
Tensor div_in_place(Context& ctx, const Tensor& a, const Tensor& b);

}  // namespace qlp
