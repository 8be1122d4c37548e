#include "shard/fsdp1_unit.h"

#include <utility>

#include "autograd/pointwise.h"
#include "tensor/collective.h"
#include "tensor/factories.h"
#include "tensor/wait_stream.h"

namespace qlp {
namespace {

using State = FlatParamHandle::State;

constexpr std::size_t kMaxInflightAllGathers = 2;  // _limiter_utils.py

}  // namespace

Tensor Fsdp1Unit::pre_forward(Context& ctx, Module&, Tensor input) {
  if (handle_->state == State::backward_pre) return input;  // recomputed within this unit's own backward pass
  if (shared_.first_iteration && !handle_->pre_forward_index) {
    handle_->pre_forward_index = shared_.pre_forward_order.size();
    shared_.pre_forward_order.push_back(handle_.get());
  }
  handle_->state = State::forward;
  if (!handle_->prefetched) unshard(ctx, *handle_);
  handle_->needs_pre_forward_unshard = false;
  wait_stream(ctx, ctx.stream, fsdp1_stream::kUnshard);
  prefetch(ctx, next_in_forward(), State::forward);
  register_post_backward_hook(ctx);
  register_reshard_only_hook(ctx, input);
  return input;
}

Tensor Fsdp1Unit::post_forward(Context& ctx, Module&, Tensor output) {
  if (leaves_forward_alone()) return output;
  reshard_after_forward(ctx);
  begin_pre_backward_hooks(ctx);
  register_pre_backward_hook(ctx, output);
  handle_->state = State::idle;
  return output;
}

void Fsdp1Unit::reshard_after_forward(Context& ctx) {
  auto& order = shared_.post_forward_order;
  // An index of 0 counts as none (`if handle._post_forward_index`).
  if (!handle_->post_forward_index || *handle_->post_forward_index == 0) handle_->post_forward_index = order.size();
  order.push_back(handle_.get());
  reshard(ctx, !is_root_ && handle_->reshards_after_forward());
}

void Fsdp1Unit::begin_pre_backward_hooks(Context& ctx) {
  if (!ctx.grad_enabled) return;
  if (is_root_) shared_.final_callback_queued = false;
  handle_->needs_pre_backward_unshard = false;
  handle_->ran_pre_backward_hook = false;
}

void Fsdp1Unit::register_pre_backward_hook(Context& ctx, const Tensor& output) {
  if (!ctx.grad_enabled || !output.requires_grad()) return;
  register_hook(output, [this](Context& c, Grads&) { pre_backward(c); });
  handle_->needs_pre_backward_unshard = true;
}

/// _unshard, with the rate limiter: the host waits for the oldest free.
void Fsdp1Unit::unshard(Context& ctx, FlatParamHandle& handle) {
  {
    const Scoped stream(ctx.stream, fsdp1_stream::kPreUnshard);
    handle.pre_unshard(ctx);
  }
  if (shared_.options.limit_all_gathers && shared_.pending_frees >= kMaxInflightAllGathers) {
    --shared_.pending_frees;
    ctx.device.synchronize();
  }
  wait_stream(ctx, fsdp1_stream::kUnshard, fsdp1_stream::kPreUnshard);
  const Scoped stream(ctx.stream, fsdp1_stream::kUnshard);
  handle.unshard(ctx);
  handle.post_unshard(ctx);
}

void Fsdp1Unit::reshard(Context& ctx, bool frees) {
  handle_->reshard(ctx, frees);
  if (frees) ++shared_.pending_frees;
  handle_->post_reshard(ctx);
  handle_->prefetched = false;
}

/// _post_backward_reshard. What SHARD_GRAD_OP keeps whole between the passes it keeps under no_sync after them too.
void Fsdp1Unit::reshard_in_backward(Context& ctx) {
  reshard(ctx, handle_->shards() && (shared_.sync_gradients || handle_->reshards_after_forward()));
}

void Fsdp1Unit::register_post_backward_hook(Context& ctx) {
  if (!ctx.grad_enabled || hooked_ || !handle_->trained()) return;
  hook_node_ = gradient_edge(handle_->flat(), ctx.stream).node;
  hook_node_->post_hooks().push_back([this](Context& c) { post_backward(c); });
  hooked_ = true;
}

/// A frozen unit is given up when the gradients of its inputs are there (register_multi_grad_hook).
void Fsdp1Unit::register_reshard_only_hook(Context& ctx, const Tensor& input) {
  if (!ctx.grad_enabled || hooked_ || handle_->trained()) return;
  hooked_ = true;
  if (!input.requires_grad()) return;
  hook_node_ = gradient_edge(input, ctx.stream).node;
  register_hook(input, [this](Context& c, Grads&) {
    handle_->state = State::backward_post;
    reshard_in_backward(c);
    prefetch(c, next_in_backward(), State::backward_pre);
  });
}

void Fsdp1Unit::pre_backward(Context& ctx) {
  if (handle_->ran_pre_backward_hook) return;
  if (is_root_ && !shared_.final_callback_queued) shared_.begin_backward(ctx);
  handle_->state = State::backward_pre;
  if (handle_->needs_pre_backward_unshard && !handle_->prefetched) unshard(ctx, *handle_);
  handle_->needs_pre_backward_unshard = false;
  wait_stream(ctx, ctx.stream, fsdp1_stream::kUnshard);
  prefetch(ctx, next_in_backward(), State::backward_pre);
  handle_->prepare_gradient_for_backward();
  handle_->ran_pre_backward_hook = true;
}

FlatParamHandle* Fsdp1Unit::next_in_forward() const {
  const auto& order = shared_.pre_forward_order;
  if (!shared_.options.forward_prefetch || !handle_->pre_forward_index) return nullptr;
  const std::size_t index = *handle_->pre_forward_index + 1;
  if (index >= order.size()) return nullptr;
  return order[index]->needs_pre_forward_unshard && !order[index]->prefetched ? order[index] : nullptr;
}

/// The unit that ended before this one, if now is the time to gather it.
FlatParamHandle* Fsdp1Unit::next_in_backward() const {
  const BackwardPrefetch when =
      handle_->state == State::backward_pre ? BackwardPrefetch::backward_pre : BackwardPrefetch::backward_post;
  if (shared_.options.backward_prefetch != when) return nullptr;
  if (!handle_->post_forward_index || *handle_->post_forward_index == 0) return nullptr;
  FlatParamHandle* next = shared_.post_forward_order[*handle_->post_forward_index - 1];
  return next->needs_pre_backward_unshard && !next->prefetched ? next : nullptr;
}

/// _prefetch_handle: `state` is what the next unit will be in when it runs.
void Fsdp1Unit::prefetch(Context& ctx, FlatParamHandle* next, State state) {
  if (next == nullptr) return;
  const State before = std::exchange(next->state, state);
  unshard(ctx, *next);
  next->state = before;
  next->prefetched = true;
}

void Fsdp1Unit::post_backward(Context& ctx) {
  handle_->post_backward_called = true;
  handle_->state = State::backward_post;
  const Tensor& flat = handle_->flat();
  if (!grad_of(flat).defined()) return;
  reshard_in_backward(ctx);
  prefetch(ctx, next_in_backward(), State::backward_pre);
  if (!shared_.sync_gradients) {
    if (handle_->uses_orig_params()) handle_->use_unsharded_grad_views(ctx);
    return;
  }
  wait_stream(ctx, fsdp1_stream::kPostBackward, ctx.stream);
  const Scoped stream(ctx.stream, fsdp1_stream::kPostBackward);
  const Scoped category(ctx.category, Category::gradients);
  const Tensor computed = grad_of(flat).alias();
  if (computed.dtype() != handle_->reduce_dtype()) {
    const Scoped buffers(ctx.category, Category::communication_buffers);
    set_data(grad_of(flat), to(ctx, computed, handle_->reduce_dtype()));
  }
  if (handle_->shards())
    reduce_gradient(ctx);
  else
    reduce_whole_gradient(ctx);
  computed.storage().record_stream(ctx.stream);
}

/// _reduce_grad: reduce-scatter, with replicas an all-reduce in place on a stream of its own.
void Fsdp1Unit::reduce_gradient(Context& ctx) {
  const std::int64_t padded = handle_->shard_numel() * shared_.options.world_size;
  Tensor input = grad_of(handle_->flat()).alias();
  set_grad(handle_->flat(), Tensor());
  if (input.numel() < padded) {
    const Scoped buffers(ctx.category, Category::communication_buffers);
    input = padded_to(ctx, input, padded);
  }
  Tensor sharded = empty(ctx, {handle_->shard_numel()}, input.dtype(), Op::reduce_scatter);
  reduce_scatter(ctx, shared_.options.group(), sharded, input, ReduceOp::average);
  if (shared_.options.records_collectives) {
    input.storage().record_stream(fsdp1_stream::kCollectives);
    sharded.storage().record_stream(fsdp1_stream::kCollectives);
  }
  if (!shared_.options.hybrid) return take_reduced(ctx, std::move(sharded));
  wait_stream(ctx, fsdp1_stream::kAllReduce, ctx.stream);
  const Scoped stream(ctx.stream, fsdp1_stream::kAllReduce);
  sharded.storage().record_stream(ctx.stream);
  all_reduce(ctx, shared_.options.replica_group(), sharded, ReduceOp::average);
  if (shared_.options.records_collectives) sharded.storage().record_stream(fsdp1_stream::kReplicaCollectives);
  take_reduced(ctx, std::move(sharded));
}

/// _accumulate_sharded_grad in the parameter's dtype, and what comes after (_post_reduce_grad_callback).
void Fsdp1Unit::take_reduced(Context& ctx, Tensor sharded) {
  if (sharded.dtype() != handle_->flat().dtype()) sharded = to(ctx, sharded, handle_->flat().dtype());
  handle_->accumulate(ctx, std::move(sharded));
  if (handle_->uses_orig_params()) handle_->use_sharded_grad_views(ctx);
}

/// _reduce_grad_no_shard: all-reduce in place, cast to the parameter's dtype.
void Fsdp1Unit::reduce_whole_gradient(Context& ctx) {
  const Tensor& grad = grad_of(handle_->flat());
  all_reduce(ctx, shared_.options.group(), grad, ReduceOp::average);
  if (shared_.options.records_collectives) grad.storage().record_stream(fsdp1_stream::kCollectives);
  if (grad.dtype() != handle_->flat().dtype()) {
    const Tensor low_precision = grad.alias();
    set_data(grad, to(ctx, grad, handle_->flat().dtype()));
    low_precision.storage().record_stream(ctx.stream);
  }
  handle_->offload_gradient(ctx, grad);
  if (handle_->uses_orig_params()) handle_->use_sharded_grad_views(ctx);
}

void Fsdp1Unit::finish_backward(Context& ctx) {
  if (!handle_->resharded()) reshard_in_backward(ctx);
  if (hooked_) {
    if (hook_node_ && handle_->trained()) hook_node_->post_hooks().clear();
    hook_node_.reset();
    hooked_ = false;
  }
  if (handle_->trained() && shared_.sync_gradients) {
    handle_->prepare_gradient_for_optim();
    handle_->post_backward_called = false;
  }
  handle_->ran_pre_backward_hook = false;
  handle_->needs_pre_backward_unshard = false;
  handle_->post_forward_index.reset();
  handle_->state = State::idle;
  handle_->prefetched = false;
}

}  // namespace qlp
