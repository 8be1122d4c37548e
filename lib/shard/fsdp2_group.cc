#include "shard/fsdp2_group.h"

#include <utility>

#include "autograd/engine.h"
#include "autograd/node.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// RegisterPostBackwardFunction: gradients pass, then the group is done.
struct PostBackward final : Node {
  PostBackward(Context& ctx, Fsdp2Group& group) : Node(ctx), group_(group) {}
  Grads backward(Context& ctx, Grads& grads) override {
    group_.post_backward(ctx);
    Grads out;
    out.push_back(grads[0]);
    return out;
  }

 private:
  Fsdp2Group& group_;
};

}  // namespace

Tensor Fsdp2Group::pre_forward(Context& ctx, const Tensor& input) {
  const bool enters = phase_ != Fsdp2Phase::forward;
  phase_ = Fsdp2Phase::forward;
  unshard(ctx);
  wait_for_unshard(ctx);
  if (!enters || !records(ctx, input)) return input;
  const auto node = make_ref<PostBackward>(ctx, *this);
  node->add_edge(input);
  Tensor out = input.alias();
  set_history(out, node);
  return out;
}

void Fsdp2Group::post_forward(Context& ctx) {
  if (!options_.behaviour.keeps_recomputed || !ctx.engine.running()) {
    reshard();
    post_forward_indices_.push_back(comm_.post_forward_order.size());
    comm_.post_forward_order.push_back(this);
  }
  phase_ = Fsdp2Phase::idle;
}

void Fsdp2Group::pre_backward(Context& ctx) {
  if (phase_ == Fsdp2Phase::pre_backward) return;
  phase_ = Fsdp2Phase::pre_backward;
  unshard(ctx);
  wait_for_unshard(ctx);
  prefetch_previous(ctx);
}

void Fsdp2Group::gather_if_sharded(Context& ctx) {
  if (unsharded_) return;
  unshard(ctx);
  wait_for_unshard(ctx);
}

void Fsdp2Group::unshard(Context& ctx) {
  if (gathering_ || unsharded_) return;
  gathering_ = true;
  if (!gathers()) return;
  const bool own_stream = phase_ == Fsdp2Phase::forward || phase_ == Fsdp2Phase::pre_backward;
  gathered_ = all_gather(ctx, params_, options_, own_stream ? kCopyInStream : ctx.stream);
}

void Fsdp2Group::wait_for_unshard(Context& ctx) {
  if (!gathering_) return;
  // A local variable holds the buffer of the group before until this is done.
  Tensor previous;
  if (phase_ == Fsdp2Phase::forward) previous = std::exchange(comm_.all_gather_state, Tensor());
  if (gathers())
    copy_out(ctx, params_, options_);
  else
    copy_shards(ctx, params_);
  for (Fsdp2Param& param : params_) param.to_unsharded();
  unsharded_ = true;
  gathering_ = false;
  Tensor gathered = std::exchange(gathered_, Tensor());
  if (gathers() && phase_ == Fsdp2Phase::forward) comm_.all_gather_state = std::move(gathered);
}

void Fsdp2Group::reshard() {
  if (phase_ == Fsdp2Phase::forward && !reshard_after_forward_) return;
  if (!std::exchange(unsharded_, false)) return;
  for (Fsdp2Param& param : params_) param.to_sharded();
}

void Fsdp2Group::prefetch_previous(Context& ctx) {
  if (post_forward_indices_.empty()) return;
  const std::size_t index = post_forward_indices_.back();
  post_forward_indices_.pop_back();
  if (index == 0) return;
  Fsdp2Group& target = *comm_.post_forward_order[index - 1];
  const Scoped phase(target.phase_, Fsdp2Phase::pre_backward);
  target.unshard(ctx);
}

std::vector<UnshardedGrad> Fsdp2Group::take_grads() {
  std::vector<UnshardedGrad> grads;
  for (Fsdp2Param& param : params_)
    if (Tensor grad = param.take_grad(); grad.defined()) grads.push_back({&param, std::move(grad)});
  return grads;
}

void Fsdp2Group::post_backward(Context& ctx) {
  phase_ = Fsdp2Phase::post_backward;
  for (Fsdp2Param& param : params_) param.add_to_accumulated_grad();
  if (!reduces_) {
    reshard();
    for (Fsdp2Param& param : params_) param.accumulate_grad(ctx);
    return;
  }
  std::vector<UnshardedGrad> grads = take_grads();
  reshard();
  if (grads.empty()) {
    if (options_.behaviour.drops_reduced_early) comm_.reduce_scatter_state.reset();
    return;
  }
  comm_.reduce_scatter_state.reset();
  comm_.reduce_scatter_state = reduce_scatter(ctx, std::move(grads), options_);
}

void Fsdp2Group::finalize() {
  gathered_.reset();
  gathering_ = false;
  post_forward_indices_.clear();
  phase_ = Fsdp2Phase::idle;
}

}  // namespace qlp
