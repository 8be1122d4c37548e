#include "shard/ddp.h"

#include <utility>

namespace qlp {
namespace {

/// named_buffers()
std::vector<Tensor> buffers_of(CausalLm& model) {
  std::vector<Tensor> buffers;
  for (const ModuleBuffer& buffer : model.buffers()) buffers.push_back(*buffer.tensor);
  return buffers;
}

}  // namespace

void DdpRuntime::prepare(Context& ctx, CausalLm& model) {
  module_buffers_ = buffers_of(model);
  std::vector<Tensor> states, trained;
  for (const Parameter* parameter : model.parameters()) {
    states.push_back(parameter->tensor);
    if (parameter->trainable) trained.push_back(parameter->tensor);
  }
  states.insert(states.end(), module_buffers_.begin(), module_buffers_.end());
  reducer_ = std::make_unique<Reducer>(ctx, options_, states, std::move(trained));
}

void DdpRuntime::begin_micro_step(Context&, bool sync) { reducer_->set_sync(sync); }

CausalLmOutput DdpRuntime::forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                                   const Tensor& num_items, const RunOptions& options) {
  if (ctx.grad_enabled) reducer_->prepare_forward(ctx);
  if (syncs_buffers_) {
    module_buffers_ = buffers_of(model);  // _sync_buffers looks whether the model has others by now (distributed.py)
    broadcast_coalesced(ctx, module_buffers_, options_.group());
  }
  if (ctx.grad_enabled) syncs_buffers_ = reducer_->syncs();
  return model.forward(ctx, ids, labels, num_items, options);
}

}  // namespace qlp
