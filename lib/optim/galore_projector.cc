#include "optim/galore_projector.h"

#include <algorithm>
#include <utility>

#include "autograd/matmul.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/svd.h"

namespace qlp {
namespace {

/// The first vectors in the dtype of the gradient. Where that is the SVD's own they stay a view of all of them.
Tensor kept(Context& ctx, const Tensor& vectors, DType dtype) {
  if (vectors.dtype() != dtype) {
    const Scoped category(ctx.category, Category::optimizer_state);
    Tensor narrow = empty_like(ctx, vectors, dtype, Op::optimizer_state);
    copy_into(ctx, narrow, vectors);
    return narrow;
  }
  vectors.storage().set_label({Category::optimizer_state, static_cast<std::uint32_t>(Op::optimizer_state), ctx.module});
  return vectors;
}

/// What get_orthogonal_matrix multiplies by the singular values and drops.
Tensor scaled_by_values(Context& ctx, const Tensor& left, const Tensor& values, const Tensor& right, bool turned) {
  const Tensor diagonal = empty(ctx, {values.numel(), values.numel()}, DType::float32, Op::diag);
  fill(ctx, diagonal, 0);
  return turned ? gemm(ctx, {.tensor = left, .turned = true}, {diagonal}, DType::float32)
                : gemm(ctx, {diagonal}, {right}, DType::float32);
}

/// get_orthogonal_matrix, which lets go of its names in their order.
std::pair<Tensor, Tensor> orthogonal_matrices(Context& ctx, const Tensor& grad, const Projection& how,
                                              const CutRows* cut) {
  const std::int64_t rows = cut ? cut->whole : grad.size(0);
  const ProjectedSides sides = projected_sides(how.options.proj_type, rows, grad.size(1));
  Tensor matrix = grad;
  if (grad.dtype() != DType::float32) {
    matrix = empty_like(ctx, grad, DType::float32, Op::to_copy);
    copy_into(ctx, matrix, grad);
  }
  Svd found = svd(ctx, cut ? all_rows(ctx, matrix, *cut) : matrix, how.cusolver);
  const std::int64_t vectors = std::min(how.options.rank, found.s.numel());
  const auto first = [vectors](const Tensor& of) { return of.narrow(0, 0, vectors); };
  Tensor dropped;
  if (sides.left != sides.right)
    dropped = scaled_by_values(ctx, first(found.ut), first(found.s), first(found.vh), sides.right);
  std::pair<Tensor, Tensor> out;
  if (sides.left) out.first = kept(ctx, first(found.ut), grad.dtype());
  if (sides.right) out.second = kept(ctx, first(found.vh), grad.dtype());
  for (Tensor* name : {&matrix, &found.ut, &found.s, &found.vh, &dropped}) name->reset();
  return out;
}

/// What vectors have for the rows of this rank.
Tensor own_columns(Context& ctx, const Tensor& vectors, const CutRows& cut, std::int64_t rows) {
  Tensor own = empty(ctx, {vectors.size(0), rows}, vectors.dtype(), Op::clone);
  copy_into(ctx, own, vectors.narrow(1, cut.first, rows));
  return own;
}

/// To the space of these vectors, from the left and then from the right.
Tensor projected(Context& ctx, const Tensor& left, const Tensor& right, const Tensor& grad, const CutRows* cut) {
  Tensor out = grad;
  if (left.defined()) out = gemm(ctx, {cut ? own_columns(ctx, left, *cut, grad.size(0)) : left}, {out}, grad.dtype());
  if (right.defined()) out = gemm(ctx, {out}, {.tensor = right, .turned = true}, grad.dtype());
  return out;
}

}  // namespace

Tensor GaLoreProjector::project(Context& ctx, const Projection& how, const Tensor& grad, std::int64_t steps,
                                const CutRows* cut) {
  if (steps % how.options.update_proj_gap == 0) {
    auto found = orthogonal_matrices(ctx, grad, how, cut);
    left_ = std::move(found.first), right_ = std::move(found.second);
  }
  return projected(ctx, left_, right_, grad, cut);
}

Tensor GaLoreProjector::project_back(Context& ctx, const Projection& how, const Tensor& low_rank) const {
  Tensor full = low_rank;
  if (left_.defined()) full = gemm(ctx, {.tensor = left_, .turned = true}, {full}, low_rank.dtype());
  if (right_.defined()) full = gemm(ctx, {full}, {right_}, low_rank.dtype());
  Tensor scaled = empty_like(ctx, full, Op::mul);
  compute(ctx, Unary::mul, scaled, full, how.options.scale);
  return scaled;
}

}  // namespace qlp
