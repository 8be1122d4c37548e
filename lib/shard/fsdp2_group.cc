#include "shard/fsdp2_group.h"

#include <utility>

#include "autograd/engine.h"
#include "autograd/node.h"
#include "tensor/factories.h"
#include "tensor/wait_stream.h"

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

Fsdp2Group::Fsdp2Group(std::vector<Fsdp2Param> params, const ReshardAfterForward& reshard, const Fsdp2Options& options,
                       Fsdp2Comm& comm)
    : params_(std::move(params)), post_forward_ranks_(options.world_size), options_(options), comm_(comm) {
  // _fsdp_init.py, _get_post_forward_mesh_info: one rank is the same as false.
  if (const auto* ranks = std::get_if<std::int64_t>(&reshard))
    reshard_after_forward_ = *ranks > 1, post_forward_ranks_ = *ranks;
  else
    reshard_after_forward_ = std::get<bool>(reshard);
}

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
    reshard(ctx);
    post_forward_indices_.push_back(comm_.post_forward_order.size());
    comm_.post_forward_order.push_back(this);
  }
  phase_ = Fsdp2Phase::idle;
}

void Fsdp2Group::pre_backward(Context& ctx, bool prefetches) {
  if (phase_ == Fsdp2Phase::pre_backward) return;
  phase_ = Fsdp2Phase::pre_backward;
  unshard(ctx);
  wait_for_unshard(ctx);
  if (prefetches) prefetch_previous(ctx);
}

void Fsdp2Group::prefetch(Context& ctx, Fsdp2Phase phase) {
  const Scoped as_in(phase_, phase);
  unshard(ctx);
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
  gathered_ = all_gather(ctx, params_, shard_group(), own_stream ? kCopyInStream : ctx.stream);
}

void Fsdp2Group::wait_for_unshard(Context& ctx) {
  if (!gathering_) return;
  // A local variable holds the buffer of the group before until this is done.
  Tensor previous;
  if (phase_ == Fsdp2Phase::forward) previous = std::exchange(comm_.all_gather_state, Tensor());
  // What was read of the buffer before has been queued, so its memory may go to the next one.
  if (previous.defined()) wait_stream(ctx, kCopyInStream, ctx.stream);
  wait_stream(ctx, ctx.stream, kCopyInStream);
  if (gathers())
    copy_out(ctx, gathered_, params_, shard_group().size);
  else
    copy_shards(ctx, params_);
  for (Fsdp2Param& param : params_) param.to_unsharded();
  unsharded_ = true;
  sharded_post_forward_ = false;
  gathering_ = false;
  Tensor gathered = std::exchange(gathered_, Tensor());
  if (gathers() && phase_ == Fsdp2Phase::forward)
    comm_.all_gather_state = std::move(gathered);
  else
    wait_stream(ctx, kCopyInStream, ctx.stream);
}

void Fsdp2Group::reshard(Context& ctx) {
  const bool forward = phase_ == Fsdp2Phase::forward;
  if (forward && !reshard_after_forward_) return;
  if (!std::exchange(unsharded_, false)) return;
  sharded_post_forward_ = forward && post_forward_ranks_ != options_.world_size;
  for (Fsdp2Param& param : params_) {
    if (sharded_post_forward_)
      param.to_sharded_post_forward(ctx, post_forward_ranks_);
    else
      param.to_sharded();
  }
}

void Fsdp2Group::prefetch_previous(Context& ctx) {
  if (post_forward_indices_.empty()) return;
  const std::size_t index = post_forward_indices_.back();
  post_forward_indices_.pop_back();
  if (index == 0) return;
  comm_.post_forward_order[index - 1]->prefetch(ctx, Fsdp2Phase::pre_backward);
}

std::vector<UnshardedGrad> Fsdp2Group::take_grads(Context& ctx) {
  std::vector<UnshardedGrad> grads;
  for (Fsdp2Param& param : params_)
    if (Tensor grad = param.take_grad(ctx); grad.defined()) grads.push_back({&param, std::move(grad)});
  return grads;
}

void Fsdp2Group::post_backward(Context& ctx) {
  phase_ = Fsdp2Phase::post_backward;
  for (Fsdp2Param& param : params_) param.add_to_accumulated_grad(ctx);
  if (!reduces_) {
    if (reshards_after_backward_) reshard(ctx);
    for (Fsdp2Param& param : params_) param.accumulate_grad(ctx);
    return;
  }
  std::vector<UnshardedGrad> grads = take_grads(ctx);
  if (reshards_after_backward_) reshard(ctx);
  wait_for_reductions(ctx);
  if (grads.empty()) {
    if (options_.behaviour.drops_reduced_early) comm_.reduce_scatter_state.reset();
    return;
  }
  comm_.reduce_scatter_state.reset();
  all_reduce_state_.reset();
  Reduction reduction = reduce(ctx, std::move(grads), options_);
  comm_.reduce_scatter_state = std::move(reduction.reduce_scatter_input);
  all_reduce_state_ = std::move(reduction.all_reduce_input);
}

/// Their buffers go next, or their results are looked at.
void Fsdp2Group::wait_for_reductions(Context& ctx) const {
  wait_stream(ctx, ctx.stream, kReduceScatterStream);
  if (options_.replicas > 1) wait_stream(ctx, ctx.stream, kAllReduceStream);
}

void Fsdp2Group::finalize(Context& ctx) {
  wait_for_reductions(ctx);
  all_reduce_state_.reset();
  gathered_.reset();
  gathering_ = false;
  post_forward_indices_.clear();
  phase_ = Fsdp2Phase::idle;
}

}  // namespace qlp
