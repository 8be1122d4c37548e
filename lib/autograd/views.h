// Views and copies that only move or regroup elements.
#pragma once

#include "autograd/node.h"

namespace qlp {

/// reshape: a view where the strides allow it, else a copy.
Tensor reshape(Context& ctx, const Tensor& a, const Shape& shape);
Tensor transpose(Context& ctx, const Tensor& a, int i, int j);
/// a[..., start : start + length] along `dim`; the gradient is padded with zeros to the full size.
Tensor slice(Context& ctx, const Tensor& a, int dim, std::int64_t start, std::int64_t length);
/// a.expand(shape), of as many dimensions; the gradient is summed over those that were widened.
Tensor expand(Context& ctx, const Tensor& a, const Shape& shape);
/// torch.cat along `dim`.
Tensor cat(Context& ctx, const Tensor& a, const Tensor& b, int dim);
/// One of the pieces of torch.split / chunk along `dim`; the pieces' gradients are put together by one node.
std::vector<Tensor> split(Context& ctx, const Tensor& a, const std::vector<std::int64_t>& lengths, int dim);
/// Repeats each of the heads in dimension 1 of [B, H, S, D].
Tensor repeat_interleave(Context& ctx, const Tensor& a, std::int64_t times);
/// The same as transformers writes it: x[:, :, None, :, :], expand, then a reshape, which copies unless there is one
/// head only.
Tensor repeat_kv(Context& ctx, const Tensor& a, std::int64_t times, bool full_slices_record);
/// a.contiguous(): a copy where it is not.
Tensor contiguous(Context& ctx, const Tensor& a);
/// The tensor without its history.
Tensor detach(const Tensor& a);

}  // namespace qlp
