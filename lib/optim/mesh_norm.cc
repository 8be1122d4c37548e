#include "optim/mesh_norm.h"

#include <utility>

#include "optim/clip_grad_norm.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {

Tensor summed_over_ranks(Context& ctx, Tensor norm, const std::vector<RankGroup>& axes) {
  for (const RankGroup& axis : axes) {
    const Tensor power = empty_like(ctx, norm, Op::pow);
    compute(ctx, Unary::square, power, norm);
    const Tensor sum = empty_like(ctx, power, Op::all_reduce);
    copy_into(ctx, sum, power);
    all_reduce(ctx, axis, sum, ReduceOp::sum);
    const Tensor root = empty_like(ctx, sum, Op::pow);
    compute(ctx, Unary::sqrt, root, sum);
    norm = root;
  }
  return norm;
}

Tensor clip_over_stages(Context& ctx, const MeshTensors& own, const RankGroup& stages, double max_norm) {
  const Scoped category(ctx.category, Category::workspace);
  ReduceNorm reduce;
  if (!own.axes.empty()) reduce = [&](Context& c, const Tensor& norm) { return summed_over_ranks(c, norm, own.axes); };
  Tensor norm = total_grad_norm(ctx, own.tensors, reduce);
  compute(ctx, Unary::square, norm, norm);
  all_reduce(ctx, stages, norm, ReduceOp::sum);
  compute(ctx, Unary::sqrt, norm, norm);
  scale_by_norm(ctx, own.tensors, norm, max_norm);
  return norm;
}

Tensor clip_over_meshes(Context& ctx, const std::vector<MeshTensors>& meshes, double max_norm) {
  const Scoped category(ctx.category, Category::workspace);
  std::vector<Tensor> norms;
  DType dtype = DType::bfloat16;
  for (const MeshTensors& mesh : meshes) {
    norms.push_back(total_grad_norm(
        ctx, mesh.tensors, [&](Context& c, const Tensor& norm) { return summed_over_ranks(c, norm, mesh.axes); }));
    if (&mesh == &meshes.front() || norms.back().dtype() == DType::float32) dtype = norms.back().dtype();
  }
  Tensor total;
  {
    const Tensor stacked = empty(ctx, {static_cast<std::int64_t>(norms.size())}, dtype, Op::stack);
    stack_into(ctx, stacked, norms);
    total = empty(ctx, {}, dtype, Op::linear_norm);
    norm_into(ctx, total, stacked);
  }
  for (const MeshTensors& mesh : meshes) scale_by_norm(ctx, mesh.tensors, total, max_norm);
  return total;
}

}  // namespace qlp
