#include "shard/tensor_parallel.h"

#include "shard/full_tensor.h"
#include "tensor/collective.h"

namespace qlp {
/// gather_state_dict_for_save: every rank takes everything to the host, and all but the first drop it.
StateDict TensorParallelRuntime::state_dict(Context& ctx, CausalLm& model, bool keeps) {
  std::vector<const Parameter*> names;
  for (const Parameter* parameter : model.parameters()) names.push_back(parameter);
  if (const Parameter* table = tied_table(model)) names.push_back(table);  // under its other name
  StateDict out;
  for (const Parameter* parameter : names) {
    const Tensor whole =
        parameter->parts == 1 ? parameter->tensor.alias() : full_tensor(ctx, *parameter, parameter->tensor);
    out.entries.push_back({parameter, to_host(ctx, whole)});
  }
  if (!keeps) out.entries.clear();
  return out;
}

}  // namespace qlp
