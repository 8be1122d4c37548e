#include "optim/cut_rows.h"

#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {

CutParameters::CutParameters(const std::vector<CutParameter>& cut) {
  for (const CutParameter& parameter : cut) rows_.emplace(parameter.part.impl(), parameter.rows);
}

const CutRows* CutParameters::rows_of(const Tensor& parameter) const {
  const auto found = rows_.find(parameter.impl());
  return found != rows_.end() ? &found->second : nullptr;
}

Tensor padded_rows(Context& ctx, const Tensor& part, const CutRows& rows) {
  Tensor out = empty(ctx, part.shape().with(0, rows.most()), part.dtype(), Op::pad);
  if (!ctx.kernels(out)) return out;
  fill(ctx, out, 0);
  copy_into(ctx, out.narrow(0, 0, part.size(0)), part);
  return out;
}

Tensor gathered_rows(Context& ctx, const Tensor& part, const Tensor& padded, const CutRows& rows) {
  Tensor out = empty(ctx, part.shape().with(0, rows.most() * rows.group.size), part.dtype(), Op::all_gather);
  all_gather(ctx, rows.group, out, padded.defined() ? padded : part);
  return out;
}

Tensor all_rows(Context& ctx, const Tensor& part, const CutRows& rows) {
  const bool pads = part.size(0) < rows.most();
  return gathered_rows(ctx, part, pads ? padded_rows(ctx, part, rows) : Tensor(), rows).narrow(0, 0, rows.whole);
}

Tensor summed(Context& ctx, const Tensor& part, const RankGroup& group) {
  Tensor sum = empty_like(ctx, part, Op::all_reduce);
  copy_into(ctx, sum, part);
  all_reduce(ctx, group, sum, ReduceOp::sum);
  return sum;
}

}  // namespace qlp
