#include "shard/full_tensor.h"

#include <vector>

#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// Parts behind each other, and joined where that is not how they lie.
Tensor gathered(Context& ctx, const Parameter& parameter, const Tensor& part) {
  const RankGroup group = mesh_group(parameter);
  const Tensor parts = empty(ctx, part.shape().with(0, part.size(0) * group.size), part.dtype(), Op::all_gather);
  all_gather(ctx, group, parts, part);
  if (parameter.cut_dim == 0) return parts;
  const std::int64_t width = part.size(parameter.cut_dim);
  Tensor joined = empty(ctx, part.shape().with(parameter.cut_dim, width * group.size), part.dtype(), Op::cat);
  for (std::int64_t rank = 0; rank < group.size && ctx.kernels(joined); ++rank)
    copy_into(ctx, joined.narrow(parameter.cut_dim, rank * width, width),
              parts.narrow(0, rank * part.size(0), part.size(0)));
  return joined;
}

/// Indices along a dimension, of which the host knows the values.
Tensor indices(Context& ctx, std::int64_t count, Op op) { return empty(ctx, {count}, DType::int64, op); }

/// _StridedShard: every rank has a piece of each of several tensors that are one. What is gathered is put in order by
/// indices that are worked out on the GPU.
Tensor reordered(Context& ctx, const Parameter& parameter, const Tensor& part) {
  const std::int64_t ranks = mesh_group(parameter).size, width = part.size(parameter.cut_dim), all = width * ranks;
  std::vector<Tensor> names{indices(ctx, all, Op::arange)};
  for (std::int64_t i = 0; i < ranks; ++i) names.push_back(indices(ctx, width, Op::contiguous));
  const Tensor joined = gathered(ctx, parameter, part);
  for (std::int64_t i = 0; i < ranks; ++i) {
    const Tensor range = indices(ctx, width, Op::arange);
    names.push_back(indices(ctx, width, Op::add));
  }
  for (int i = 0; i < 2; ++i) names.push_back(indices(ctx, all, Op::cat));
  {
    names.push_back(indices(ctx, all, Op::sort));
    const Tensor values = indices(ctx, all, Op::sort), order = indices(ctx, all, Op::sort);
  }
  names.push_back(indices(ctx, all, Op::index_select));
  Tensor whole = empty_like(ctx, joined, Op::index_select);
  const std::int64_t fused = parameter.fused_parts, own = width / fused;
  for (std::int64_t rank = 0; rank < ranks && ctx.kernels(whole); ++rank)
    for (std::int64_t i = 0; i < fused; ++i)
      copy_into(ctx, whole.narrow(parameter.cut_dim, (i * ranks + rank) * own, own),
                joined.narrow(parameter.cut_dim, rank * width + i * own, own));
  return whole;
}

}  // namespace

Tensor full_tensor(Context& ctx, const Parameter& parameter, const Tensor& part) {
  const Scoped category(ctx.category, Category::gathered_weights);
  const bool strided = parameter.cut_dim > 0 && parameter.fused_parts > 1;
  return strided ? reordered(ctx, parameter, part) : gathered(ctx, parameter, part);
}

}  // namespace qlp
