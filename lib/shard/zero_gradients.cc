#include "shard/zero_gradients.h"

#include <algorithm>
#include <utility>

#include "autograd/node.h"
#include "shard/zero_norm.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/wait_stream.h"

namespace qlp {

ZeroGradients::ZeroGradients(Context& ctx, std::vector<std::unique_ptr<ZeroGroup>>& groups, const ZeroOptions& options)
    : options_(options), groups_(groups), dtype_(groups.front()->tensor(0).dtype()) {
  accumulates_apart_ = dtype_ != options_.gradient_dtype() && !options_.partition_gradients;
  std::int64_t largest = 0;
  for (const auto& group : groups_)
    for (std::size_t i = 0; i < group->parameters().size(); ++i) {
      entries_.push_back({group.get(), i, Tensor(), Tensor()});
      largest = std::max(largest, group->tensor(i).numel());
    }
  const Scoped category(ctx.category, Category::communication_buffers);
  if (options_.offload_optimizer) {
    host_buffer_ = offloaded(ctx, largest, dtype_, options_);
    gpu_buffer_ = empty(ctx, {largest}, dtype_, Op::zeros);
  }
  // Without any of these the gradients are left alone until the backward pass is over.
  if (!options_.partition_gradients && !options_.overlap_comm && !accumulates_apart_ && !options_.contiguous_gradients)
    return;
  for (Entry& entry : entries_)
    register_post_accumulate_hook(tensor(entry), [this, &entry](Context& c) { gradient_ready(c, entry); });
}

void ZeroGradients::gradient_ready(Context& ctx, Entry& entry) {
  setup_buckets(ctx);
  if (accumulates_apart_) accumulate_apart(ctx, entry);
  if (options_.partition_gradients || (options_.overlap_comm && boundary_)) put_in_bucket(ctx, entry);
}

/// With the first gradient since the buckets went.
void ZeroGradients::setup_buckets(Context& ctx) {
  if (std::exchange(ready_, true) || !options_.contiguous_gradients) return;
  const Scoped category(ctx.category, Category::communication_buffers);
  for (int i = 0; i < (options_.overlap_comm ? 2 : 1); ++i)
    buckets_.push_back(empty(ctx, {options_.reduce_bucket_size}, dtype_, Op::ipg_bucket));
  current_ = 0;
}

void ZeroGradients::accumulate_apart(Context& ctx, Entry& entry) const {
  const Tensor grad = grad_of(tensor(entry));
  if (!grad.defined()) return;
  const Scoped category(ctx.category, Category::gradients);
  const bool casts = grad.dtype() != options_.gradient_dtype();
  const Tensor wide = casts ? empty_like(ctx, grad, options_.gradient_dtype(), Op::to_copy) : grad;
  if (casts) copy_into(ctx, wide, grad);
  if (entry.accumulated.defined())
    compute(ctx, Binary::add, entry.accumulated, entry.accumulated, wide);
  else
    entry.accumulated = wide;
  set_grad(tensor(entry), Tensor());
}

Tensor ZeroGradients::gradient_to_reduce(Context& ctx, const Entry& entry) const {
  Tensor grad = kept_gradient(entry);
  if (!accumulates_apart_ || !grad.defined() || grad.dtype() == dtype_) return grad;
  Tensor cast = empty_like(ctx, grad, dtype_, Op::to_copy);
  copy_into(ctx, cast, grad);
  return cast;
}

ZeroGradients::Stretch ZeroGradients::mine_of(const Entry& entry) const {
  std::int64_t start = 0;
  for (const ZeroLayout::Slice& slice : entry.group->slices(entry.index)) {
    if (slice.rank == options_.rank) return {slice.rank, start, slice.numel};
    start += slice.numel;
  }
  return {options_.rank, 0, 0};
}

Tensor ZeroGradients::kept_gradient(const Entry& entry) const {
  return accumulates_apart_ ? entry.accumulated : grad_of(tensor(entry));
}

void ZeroGradients::clear(Entry& entry) const {
  if (accumulates_apart_)
    entry.accumulated.reset();
  else
    set_grad(tensor(entry), Tensor());
}

/// reduce_independent_p_g_buckets_and_remove_grads
void ZeroGradients::put_in_bucket(Context& ctx, Entry& entry) {
  const Tensor grad = gradient_to_reduce(ctx, entry);
  const std::int64_t numel = tensor(entry).numel();
  if (elements_ + numel > options_.reduce_bucket_size) {
    wait_stream(ctx, ctx.stream, reduction_stream(ctx));  // the other bucket is free
    reduce_bucket(ctx);
    if (options_.contiguous_gradients && options_.overlap_comm) current_ = 1 - current_;
  }
  // A larger one is reduced where it is, by itself.
  if (options_.contiguous_gradients && numel <= options_.reduce_bucket_size)
    move_to(ctx, grad, buckets_[current_], elements_);
  else if (accumulates_apart_)
    copies_.push_back(grad);
  elements_ += numel;
  pending_.push_back(&entry);
}

/// grad.data = the place in `buffer` from `start` on, with what the gradient has held.
void ZeroGradients::move_to(Context& ctx, const Tensor& grad, const Tensor& buffer, std::int64_t start) {
  const Tensor place = buffer.strided(grad.shape(), contiguous_strides(grad.shape()), start);
  copy_elements(ctx, place, grad);
  set_data(grad, place);
}

/// reduce_ipg_grads
void ZeroGradients::reduce_bucket(Context& ctx) {
  wait_stream(ctx, reduction_stream(ctx), ctx.stream);
  if (options_.contiguous_gradients)
    average(ctx);
  else
    all_reduce_whole_gradients(ctx);
  const Scoped stream(ctx.stream, reduction_stream(ctx));
  for (Entry* entry : pending_) {
    if (mine(*entry)) {
      if (options_.contiguous_gradients) keep(ctx, *entry);
    } else if (options_.partition_gradients) {
      if (options_.overlap_comm && !options_.contiguous_gradients)
        previous_.push_back(entry);
      else
        clear(*entry);
    }
  }
  pending_.clear();
  copies_.clear();
  elements_ = 0;
}

/// average_tensor, on the gradients that lie one after another in the bucket.
void ZeroGradients::average(Context& ctx) {
  const Scoped category(ctx.category, Category::communication_buffers);
  const Scoped stream(ctx.stream, reduction_stream(ctx));
  if (pending_.empty()) return;
  // One that is larger than the bucket is alone, and where autograd has left it.
  const bool larger = elements_ > options_.reduce_bucket_size;
  const Tensor bucket = larger ? gradient_to_reduce(ctx, *pending_.front()).view({elements_}) : buckets_[current_];
  if (!options_.reduce_scatter) {
    reduce(ctx, {bucket.flat(0, elements_)}, Collective::all_reduce, 0);
    return;
  }
  Slices slices;
  std::int64_t start = 0;
  for (const Entry* entry : pending_)
    for (const ZeroLayout::Slice& slice : entry->group->slices(entry->index)) {
      if (!slices.empty() && slices.back().rank == slice.rank)
        slices.back().numel += slice.numel;
      else
        slices.push_back({slice.rank, start, slice.numel});
      start += slice.numel;
    }
  if (options_.use_multi_rank_bucket_allreduce) {
    average_slices(ctx, bucket, slices, Collective::all_reduce);
    return;
  }
  // One reduction for each rank, in the order in which the ranks come up.
  while (!slices.empty()) {
    const std::int64_t rank = slices.front().rank;
    const auto others =
        std::stable_partition(slices.begin(), slices.end(), [&](const Stretch& slice) { return slice.rank == rank; });
    average_slices(ctx, bucket, Slices(slices.begin(), others), Collective::reduce);
    slices.erase(slices.begin(), others);
  }
}

/// allreduce_and_scatter, allreduce_no_retain: as many slices together as make up a bucket.
void ZeroGradients::average_slices(Context& ctx, const Tensor& bucket, const Slices& slices, Collective kind) {
  std::int64_t numel = 0;
  std::vector<Tensor> pieces;
  for (const Stretch& slice : slices) {
    numel += slice.numel, pieces.push_back(bucket.flat(slice.start, slice.numel));
    if (numel <= options_.reduce_bucket_size) continue;
    reduce(ctx, std::exchange(pieces, {}), kind, slice.rank);
    numel = 0;
  }
  if (!pieces.empty()) reduce(ctx, pieces, kind, slices.back().rank);
}

/// allreduce_bucket: several pieces are joined for it, one is summed where it is; in the dtype of communication.
void ZeroGradients::reduce(Context& ctx, const std::vector<Tensor>& pieces, Collective kind, std::int64_t root) const {
  std::int64_t numel = 0;
  for (const Tensor& piece : pieces) numel += piece.numel();
  const bool joins = pieces.size() > 1, casts = options_.reduced_dtype() != dtype_;
  const Tensor joined = joins ? empty(ctx, {numel}, dtype_, Op::cat) : pieces.front();
  if (joins) copy_pieces(ctx, joined, pieces, true);
  const Tensor sent = casts ? empty(ctx, {numel}, options_.reduced_dtype(), Op::to_copy) : joined;
  if (casts) copy_elements(ctx, sent, joined);
  if (kind == Collective::reduce)
    qlp::reduce(ctx, options_.group(), sent, ReduceOp::average, root);
  else
    all_reduce(ctx, options_.group(), sent, ReduceOp::average);
  if (options_.records_collectives && (joins || casts)) sent.storage().record_stream(zero_stream::kCollectives);
  if (casts) copy_elements(ctx, joined, sent);
  if (joins) copy_pieces(ctx, joined, pieces, false);
}

/// Into a flat buffer, or back out of it.
void ZeroGradients::copy_pieces(Context& ctx, const Tensor& flat, const std::vector<Tensor>& pieces, bool in) {
  if (!ctx.kernels(flat)) return;
  std::int64_t start = 0;
  for (const Tensor& piece : pieces) {
    const Tensor place = flat.flat(start, piece.numel());
    copy_elements(ctx, in ? place : piece, in ? piece : place);
    start += piece.numel();
  }
}

/// buffered_reduce_fallback: without contiguous gradients.
void ZeroGradients::all_reduce_whole_gradients(Context& ctx) {
  if (pending_.empty()) return;
  const Scoped category(ctx.category, Category::communication_buffers);
  if (options_.overlap_comm) ctx.device.synchronize(), clear_previous();
  const Scoped stream(ctx.stream, reduction_stream(ctx));
  std::vector<Tensor> gradients;
  for (const Entry* entry : pending_) gradients.push_back(kept_gradient(*entry));
  reduce(ctx, accumulates_apart_ ? copies_ : gradients, Collective::all_reduce, 0);
}

void ZeroGradients::clear_previous() {
  for (Entry* entry : previous_) clear(*entry);
  previous_.clear();
}

/// copy_grads_in_partition: out of the bucket, which will be written again.
void ZeroGradients::keep(Context& ctx, Entry& entry) {
  if (options_.offload_optimizer) {
    if (options_.accumulates) accumulate_on_host(ctx, entry);
    if (boundary_) offload(ctx, entry);
    return;
  }
  const Scoped category(ctx.category, Category::gradients);
  if (!in_partition_.defined()) {
    std::int64_t total = 0;
    for (const auto& group : groups_)
      for (const std::size_t i : group->members()) total += group->tensor(i).numel();
    in_partition_ = empty(ctx, {total}, dtype_, Op::grads_in_partition);
    kept_elements_ = 0;
  }
  const Tensor grad = gradient_to_reduce(ctx, entry);
  move_to(ctx, grad, in_partition_, kept_elements_);
  kept_elements_ += grad.numel();
}

/// async_accumulate_grad_in_cpu_via_gpu: through a buffer that is there, to and fro; before a step it stays on the GPU.
void ZeroGradients::accumulate_on_host(Context& ctx, Entry& entry) const {
  const Scoped category(ctx.category, Category::gradients);
  const Tensor grad = kept_gradient(entry).view({tensor(entry).numel()});
  const std::uint64_t bytes = bytes_of(grad.shape(), dtype_).count();
  if (!entry.on_host.defined()) entry.on_host = offloaded(ctx, grad.numel(), dtype_, options_);
  if (!first_) {
    const Tensor before = gpu_buffer_.flat(0, grad.numel());
    copy_to_device(ctx, bytes);
    copy_into(ctx, before, entry.on_host);
    compute(ctx, Binary::add, grad, grad, before);
  }
  if (!boundary_) {
    copy_to_host(ctx, bytes);
    copy_into(ctx, entry.on_host, grad);
  }
}

/// The norm and the check for overflow are worked out on the GPU; this rank's part goes to the host in float32.
void ZeroGradients::offload(Context& ctx, Entry& entry) {
  const Scoped category(ctx.category, Category::workspace);
  const Tensor grad = kept_gradient(entry);
  const Stretch mine = mine_of(entry);
  const Tensor part = grad.view({grad.numel()}).flat(mine.start, mine.numel);
  entry.group->norms.push_back(double_norm(ctx, part));
  {
    const Tensor found = inf_or_nan(ctx, grad);
    overflowed_ = item(ctx, found) != 0 || overflowed_;
  }
  ctx.device.synchronize();
  Tensor wide = part;
  if (grad.dtype() != DType::float32) {
    wide = empty(ctx, part.shape(), DType::float32, Op::to_copy);
    copy_into(ctx, wide, part);
  }
  const std::int64_t start = entry.group->start_in(options_.rank, entry.index);
  copy_to_host(ctx, bytes_of(part.shape(), DType::float32).count());
  copy_into(ctx, entry.group->host_gradient.flat(start, mine.numel), wide);
  clear(entry);
}

/// reduce_gradients, independent_gradient_partition_epilogue. Stage 1 leaves gradients where they are until then.
void ZeroGradients::finish_backward(Context& ctx) {
  if (!options_.partition_gradients && !boundary_) return;
  Tensor looked_at;  // grad_reduc, a cast of its own beside the bucket's, is there until the function returns
  if (!options_.partition_gradients && !options_.overlap_comm) {
    for (Entry& entry : entries_) {
      looked_at = gradient_to_reduce(ctx, entry);
      if (looked_at.defined()) put_in_bucket(ctx, entry);
    }
  }
  reduce_bucket(ctx);
  if (options_.overlap_comm) ctx.device.synchronize(), clear_previous();
  if (!options_.offload_optimizer)
    for (const auto& group : groups_) collect(ctx, *group);
  release_buckets();
  for (Entry& entry : entries_) {
    set_grad(tensor(entry), Tensor());
    entry.accumulated.reset();
  }
  first_ = boundary_;
}

/// This rank's gradients of a group, added to those of the micro steps before; before a step, the parts of them that
/// make up the partition (get_all_grad_tensors, get_flat_partition).
void ZeroGradients::collect(Context& ctx, ZeroGroup& group) {
  const Scoped category(ctx.category, Category::gradients);
  std::vector<Tensor> grads;
  for (const Entry& entry : entries_) {
    if (entry.group != &group || !mine(entry)) continue;
    const Tensor grad = kept_gradient(entry);
    grads.push_back(grad.defined() ? grad : empty_like(ctx, tensor(entry), options_.gradient_dtype(), Op::zeros));
    if (!grad.defined()) fill(ctx, grads.back(), 0);
  }
  if (group.accumulated.empty())
    group.accumulated = std::move(grads);
  else
    for (std::size_t i = 0; i < grads.size(); ++i)
      compute(ctx, Binary::add, group.accumulated[i], group.accumulated[i], grads[i]);
  if (!boundary_) return;
  std::int64_t missing = group.layout().partition_size();
  std::size_t next = 0;
  for (const Entry& entry : entries_) {
    if (entry.group != &group || !mine(entry)) continue;
    const Tensor& grad = group.accumulated[next++];
    const Stretch own = mine_of(entry);
    group.averaged.push_back(own.numel < grad.numel() ? grad.flat(own.start, own.numel) : grad);
    missing -= own.numel;
  }
  group.accumulated.clear();
  if (missing > 0) {
    group.averaged.push_back(empty(ctx, {missing}, options_.gradient_dtype(), Op::zeros));
    fill(ctx, group.averaged.back(), 0);
  }
}

void ZeroGradients::release_buckets() {
  ready_ = false;
  if (!options_.contiguous_gradients) return;
  buckets_.clear();
  in_partition_.reset();
}

}  // namespace qlp
