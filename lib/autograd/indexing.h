// The largest of each row, sorting, and rows picked by index, as autograd records them.
#pragma once

#include <vector>

#include "autograd/node.h"

namespace qlp {

struct TopK {
  Tensor values, indices;  ///< indices of int64
};
/// torch.topk(a, k, dim=-1)
TopK topk(Context& ctx, const Tensor& a, std::int64_t k);

/// a.max(dim=-1, keepdim=True).values, with the indices that its gradient needs.
Tensor max_last(Context& ctx, const Tensor& a);
/// torch.zeros_like(like).scatter_(1, indices, values): rows of `values` [T, K] at `indices` of those of `like` [T, N].
Tensor scatter_last(Context& ctx, const Tensor& like, const Tensor& indices, const Tensor& values);

struct Sorted {
  Tensor values, order;
};
/// torch.sort of a row of int64, which nobody differentiates.
Sorted sort(Context& ctx, const Tensor& a);

/// a[index]: rows of `a` [N, ...] by an `index` [S] of int64 give [S, ...]. The gradient is scattered, in sorted order.
Tensor index_rows(Context& ctx, const Tensor& a, const Tensor& index);

/// a[rows, columns, None]: elements of `a` [N, K] give [S, 1]. The gradient is scattered as that of rows is.
Tensor index_elements(Context& ctx, const Tensor& a, const Tensor& rows, const Tensor& columns);
/// into.index_add_(0, index, source): rows `source` [S, ...] are added to those of `into` at `index` [S].
Tensor add_rows_in_place(Context& ctx, const Tensor& into, const Tensor& index, const Tensor& source);

/// a.index_copy(0, index, rows): a copy of `a` [N, ...] whose rows at `index` are `rows`. The index is a list of
/// Python, of which a tensor is made.
Tensor copy_rows(Context& ctx, const Tensor& a, const std::vector<std::int64_t>& index, const Tensor& rows);

/// Where elements of `a` are not zero, as torch.where(a) tells: int64 numbers [dimensions of `a`, found], those of one
/// dimension behind each other. How many are found is the caller's to know; the host waits for the answer.
Tensor nonzero(Context& ctx, const Tensor& a, std::int64_t found);

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
