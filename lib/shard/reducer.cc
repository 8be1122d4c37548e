#include "shard/reducer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "autograd/engine.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
// torch/nn/parallel/distributed.py
constexpr std::uint64_t kFirstBucketBytes = kMiB;  // dist._DEFAULT_FIRST_BUCKET_BYTES
constexpr std::int64_t kDefaultCapMb = 25;         // bucket_bytes_cap

constexpr StreamId kCollectiveStream = 1;

}  // namespace

Reducer::Reducer(Context& ctx, const ReducerOptions& options, const std::vector<Tensor>& states,
                 std::vector<Tensor> parameters)
    : options_(options), parameters_(std::move(parameters)) {
  const Scoped category(ctx.category, Category::communication_buffers);
  verify_shapes(ctx);
  broadcast_coalesced(ctx, states, options_.group());
  std::vector<Bucket> buckets = assign_buckets(parameters_, {std::numeric_limits<std::uint64_t>::max()});
  std::reverse(buckets.begin(), buckets.end());  // distributed.py, _ddp_init_helper
  make_buckets(ctx, buckets);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    accumulators_.push_back(gradient_edge(parameters_[i]).node);
    accumulators_.back()->post_hooks().push_back([this, i](Context& c) { gradient_ready(c, i); });
  }
}

/// verify_params_across_processes: the number of parameters is gathered, then their sizes and strides are broadcast.
void Reducer::verify_shapes(Context& ctx) const {
  const Tensor count = empty(ctx, {1}, DType::int64, Op::input);
  std::vector<Tensor> counts;
  for (std::int64_t rank = 0; rank < options_.world_size; ++rank)
    counts.push_back(empty(ctx, {1}, DType::int64, Op::all_gather));
  scratch(ctx, static_cast<std::uint64_t>(options_.world_size) * size_of(DType::int64), Op::all_gather);
  communicate(ctx, Collective::all_gather, options_.group(), counts.size() * size_of(DType::int64));
  std::uint64_t words = 0;
  for (const Tensor& parameter : parameters_) words += 2 * parameter.shape().rank();
  scratch(ctx, words * size_of(DType::int64), Op::broadcast);
  communicate(ctx, Collective::broadcast, options_.group(), words * size_of(DType::int64));
}

std::vector<Bucket> Reducer::assign(const std::vector<std::size_t>& order,
                                    const std::vector<std::uint64_t>& limits) const {
  std::vector<Tensor> tensors;
  for (const std::size_t i : order) tensors.push_back(parameters_[i]);
  std::vector<Bucket> buckets = assign_buckets(tensors, limits, BucketOrder::as_closed);
  for (Bucket& bucket : buckets)
    for (std::size_t& member : bucket) member = order[member];
  return buckets;
}

void Reducer::make_buckets(Context& ctx, const std::vector<Bucket>& buckets) {
  views_.assign(parameters_.size(), Tensor());
  if (options_.replaced == ReplacedBuckets::held) replaced_ = std::move(buckets_);
  if (options_.replaced == ReplacedBuckets::recorded)
    for (const Tensor& old : buckets_) old.storage().record_stream(kCollectiveStream);
  buckets_.clear();
  members_.clear();
  bucket_of_.assign(parameters_.size(), 0);
  for (const Bucket& bucket : buckets) {
    std::int64_t numel = 0;
    for (const std::size_t i : bucket) numel += parameters_[i].numel();
    buckets_.push_back(empty(ctx, {numel}, parameters_[bucket.front()].dtype(), Op::ddp_bucket));
    std::int64_t start = 0;
    for (const std::size_t i : bucket) {
      views_[i] = buckets_.back().strided(parameters_[i].shape(), parameters_[i].strides(), start);
      start += parameters_[i].numel();
      bucket_of_[i] = members_.size();
    }
    members_.push_back(bucket.size());
  }
  pending_ = members_;
}

void Reducer::prepare_forward(Context& ctx) {
  if (rebuilt_ || ready_order_.empty()) return;
  rebuilt_ = true;
  const Scoped category(ctx.category, Category::communication_buffers);
  const std::uint64_t cap = static_cast<std::uint64_t>(options_.bucket_cap_mb) * kMiB;
  const auto buckets = assign(ready_order_, {options_.bucket_cap_mb == kDefaultCapMb ? kFirstBucketBytes : cap, cap});
  {  // sync_bucket_indices: which parameter is where, and the buckets' sizes, from the first rank. As it happens once
     // it is not recorded: the last step of a short run shall be like those that follow.
    const Tensor indices =
        empty(ctx, {static_cast<std::int64_t>(ready_order_.size()) + 1}, DType::int32, Op::broadcast);
    const Tensor sizes = empty(ctx, {static_cast<std::int64_t>(buckets.size())}, DType::int32, Op::broadcast);
  }
  make_buckets(ctx, buckets);
}

/// The gradient goes into its bucket, which is summed over the ranks and copied back when the backward pass is over.
void Reducer::gradient_ready(Context& ctx, std::size_t index) {
  if (!sync_) return;
  if (!rebuilt_) ready_order_.push_back(index);
  replaced_.clear();
  const std::size_t bucket = bucket_of_[index];
  copy_into(ctx, views_[index], grad_of(parameters_[index]));
  if (options_.gradient_as_bucket_view) set_grad(parameters_[index], views_[index]);
  if (--pending_[bucket] != 0) return;
  pending_[bucket] = members_[bucket];
  all_reduce(ctx, options_.group(), buckets_[bucket], ReduceOp::average);
  if (++summed_ < buckets_.size()) return;
  summed_ = 0;
  ctx.engine.queue_callback([this](Context& c) { finalize_backward(c); });
}

/// What is averaged is copied back; gradients that are gone by now, as LOMO's hooks take them, are made anew.
void Reducer::finalize_backward(Context& ctx) {
  const Scoped category(ctx.category, Category::gradients);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (options_.gradient_as_bucket_view) {
      if (!grad_of(parameters_[i]).defined()) set_grad(parameters_[i], views_[i]);
      continue;
    }
    if (!grad_of(parameters_[i]).defined()) set_grad(parameters_[i], empty_like(ctx, parameters_[i], Op::empty));
    if (ctx.kernels(views_[i])) copy_into(ctx, grad_of(parameters_[i]), views_[i]);
  }
}

}  // namespace qlp
