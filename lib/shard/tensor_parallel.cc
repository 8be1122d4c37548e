#include "shard/tensor_parallel.h"

#include <algorithm>

#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// DTensor.full_tensor(): parts are gathered behind each other, and joined where that is not how they lie.
Tensor full_tensor(Context& ctx, const Parameter& parameter) {
  const RankGroup group = mesh_group(parameter);
  const Scoped category(ctx.category, Category::gathered_weights);
  const Tensor& part = parameter.tensor;
  Tensor parts = empty(ctx, part.shape().with(0, part.size(0) * group.size), part.dtype(), Op::all_gather);
  all_gather(ctx, group, parts, part);
  if (parameter.cut_dim == 0) return parts;
  const std::int64_t width = part.size(parameter.cut_dim);
  Tensor whole = empty(ctx, part.shape().with(parameter.cut_dim, width * group.size), part.dtype(), Op::cat);
  const std::int64_t joined = std::max<std::int64_t>(parameter.fused_parts, 1), own = width / joined;
  for (std::int64_t rank = 0; rank < group.size && ctx.kernels(whole); ++rank)
    for (std::int64_t i = 0; i < joined; ++i)  // each of the projections that the tensor joins
      copy_into(ctx, whole.narrow(parameter.cut_dim, (i * group.size + rank) * own, own),
                parts.narrow(0, rank * part.size(0), part.size(0)).narrow(parameter.cut_dim, i * own, own));
  return whole;
}

}  // namespace

/// gather_state_dict_for_save: every rank takes everything to the host, and all but the first drop it.
StateDict TensorParallelRuntime::state_dict(Context& ctx, CausalLm& model, bool keeps) {
  std::vector<const Parameter*> names;
  for (const Parameter* parameter : model.parameters()) names.push_back(parameter);
  if (const Parameter* table = tied_table(model)) names.push_back(table);  // under its other name
  StateDict out;
  for (const Parameter* parameter : names) {
    const Tensor whole = parameter->mesh == LayerMesh::none ? parameter->tensor.alias() : full_tensor(ctx, *parameter);
    out.entries.push_back({parameter, to_host(ctx, whole)});
  }
  if (!keeps) out.entries.clear();
  return out;
}

}  // namespace qlp
