#include "shard/fsdp2_state.h"

#include <utility>

#include "autograd/engine.h"
#include "autograd/pointwise.h"

namespace qlp {

Tensor Fsdp2State::pre_forward(Context& ctx, Module&, Tensor input) {
  if (modules_.size() > 1) {
    const bool first = to_run_.empty();
    if (first) to_run_.insert(modules_.begin(), modules_.end());
    if (!first && !shared_.options.behaviour.casts_everywhere) return input;
  }
  return begin_forward(ctx, std::move(input));
}

Tensor Fsdp2State::further_input(Context& ctx, Module&, Tensor input) {
  const bool casts = phase_ != Fsdp2Phase::pre_backward || shared_.options.behaviour.casts_everywhere;
  return casts ? cast_input(ctx, std::move(input)) : input;
}

Tensor Fsdp2State::begin_forward(Context& ctx, Tensor input) {
  if (phase_ == Fsdp2Phase::pre_backward) {  // a recomputation
    if (!shared_.options.behaviour.casts_everywhere) return input;
    if (group_) group_->gather_if_sharded(ctx);
    return cast_input(ctx, std::move(input));
  }
  phase_ = Fsdp2Phase::forward;
  if (!shared_.forward_root) shared_.forward_root = this;
  input = cast_input(ctx, std::move(input));
  if (group_) input = group_->pre_forward(ctx, input);
  prefetch(ctx, forward_prefetch_, Fsdp2Phase::forward);
  return input;
}

Tensor Fsdp2State::post_forward(Context& ctx, Module& module, Tensor output) {
  if (modules_.size() > 1) {
    const bool last = to_run_.erase(&module) && to_run_.empty();
    if (!last) {
      if (shared_.options.behaviour.casts_everywhere) cast_outputs(ctx, {&output});
      return output;
    }
  }
  post_forward(ctx, {&output});
  return output;
}

void Fsdp2State::post_forward(Context& ctx, const std::vector<Tensor*>& outputs) {
  if (phase_ == Fsdp2Phase::pre_backward) {
    if (shared_.options.behaviour.casts_everywhere) cast_outputs(ctx, outputs);
    return;
  }
  if (group_) group_->post_forward(ctx);
  if (ctx.grad_enabled)
    for (const Tensor* output : outputs)
      if (output->requires_grad()) register_hook(*output, [this](Context& c, Grads&) { pre_backward(c); });
  phase_ = Fsdp2Phase::idle;
  Tensor last_gathered;  // a local variable: until this returns
  if (shared_.forward_root == this) {
    last_gathered = std::exchange(shared_.comm.all_gather_state, Tensor());
    shared_.forward_root = nullptr;
  }
  cast_outputs(ctx, outputs);
}

Tensor Fsdp2State::cast_input(Context& ctx, Tensor input) const {
  const auto& [param_dtype, reduce_dtype, output_dtype, casts] = shared_.options.precision;
  return casts && param_dtype && input.defined() && is_floating(input.dtype()) ? to(ctx, input, *param_dtype)
                                                                               : std::move(input);
}

void Fsdp2State::cast_outputs(Context& ctx, const std::vector<Tensor*>& outputs) {
  const auto& dtype = shared_.options.precision.output_dtype;
  if (!dtype) return;
  for (Tensor* output : outputs)
    if (is_floating(output->dtype())) *output = to(ctx, *output, *dtype);
}

void Fsdp2State::pre_backward(Context& ctx) {
  phase_ = Fsdp2Phase::pre_backward;
  if (!std::exchange(shared_.final_callback_queued, true))
    ctx.engine.queue_callback([shared = &shared_](Context& c) { end_backward(c, *shared); });
  if (group_) group_->pre_backward(ctx, backward_prefetch_.empty());
  prefetch(ctx, backward_prefetch_, Fsdp2Phase::pre_backward);
}

void Fsdp2State::prefetch(Context& ctx, const std::vector<Fsdp2State*>& states, Fsdp2Phase phase) {
  for (Fsdp2State* state : states)
    if (state->group_) state->group_->prefetch(ctx, phase);
}

void Fsdp2State::end_backward(Context& ctx, Fsdp2Shared& shared) {
  for (Fsdp2State* state : shared.states) {
    state->phase_ = Fsdp2Phase::idle;
    state->to_run_.clear();  // a fused loss reads the head's weight and does not run it
    if (!state->group_) continue;
    // No gradient has passed through the input of this group.
    if (state->group_->phase() != Fsdp2Phase::post_backward) state->group_->post_backward(ctx);
    if (shared.is_last_backward)
      state->group_->finalize(ctx);
    else
      state->group_->end_pass();
  }
  shared.final_callback_queued = false;
  if (!shared.is_last_backward) return;
  shared.comm.post_forward_order.clear();
  shared.comm.reduce_scatter_state.reset();
}

}  // namespace qlp
