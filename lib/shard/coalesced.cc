#include "shard/coalesced.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

constexpr std::size_t kMaxInFlight = 2;

struct OpenBucket {
  DType dtype;
  std::size_t limit = 0;  ///< index into the limits
  std::uint64_t bytes = 0;
  Bucket members;
};

/// torch::utils::flatten_dense_tensors: one tensor alone is only viewed.
Tensor flatten(Context& ctx, const std::vector<Tensor>& tensors, const Bucket& bucket) {
  const Tensor& first = tensors[bucket.front()];
  if (bucket.size() == 1 && first.contiguous()) return first.alias();
  std::int64_t numel = 0;
  for (const std::size_t i : bucket) numel += tensors[i].numel();
  Tensor flat = empty(ctx, {numel}, first.dtype(), Op::broadcast);
  std::int64_t start = 0;
  for (const std::size_t i : bucket) {
    const std::int64_t length = tensors[i].numel();
    if (ctx.kernels(flat)) copy_elements(ctx, flat.flat(start, length), tensors[i]);
    start += length;
  }
  return flat;
}

/// What has been received goes to its places.
void unflatten(Context& ctx, const Tensor& flat, const std::vector<Tensor>& tensors, const Bucket& bucket) {
  if (bucket.size() == 1 || !ctx.kernels(flat)) return;
  std::int64_t start = 0;
  for (const std::size_t i : bucket) {
    copy_elements(ctx, tensors[i], flat.flat(start, tensors[i].numel()));
    start += tensors[i].numel();
  }
}

}  // namespace

std::vector<Bucket> assign_buckets(const std::vector<Tensor>& tensors, const std::vector<std::uint64_t>& limits,
                                   BucketOrder order) {
  std::vector<OpenBucket> open;
  std::vector<Bucket> closed;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const DType dtype = tensors[i].dtype();
    auto bucket = std::find_if(open.begin(), open.end(), [&](const OpenBucket& b) { return b.dtype == dtype; });
    if (bucket == open.end()) bucket = open.insert(open.end(), OpenBucket{.dtype = dtype, .members = {}});
    bucket->members.push_back(i);
    bucket->bytes += bytes_of(tensors[i].shape(), dtype).count();
    if (bucket->bytes < limits[bucket->limit]) continue;
    closed.push_back(std::exchange(bucket->members, {}));
    bucket->bytes = 0;
    bucket->limit = std::min(bucket->limit + 1, limits.size() - 1);
  }
  for (OpenBucket& bucket : open)
    if (!bucket.members.empty()) closed.push_back(std::move(bucket.members));
  if (order == BucketOrder::by_first_tensor)
    std::sort(closed.begin(), closed.end(), [](const Bucket& a, const Bucket& b) { return a.front() < b.front(); });
  return closed;
}

void broadcast_coalesced(Context& ctx, const std::vector<Tensor>& tensors, const RankGroup& group,
                         std::uint64_t bucket_bytes) {
  const Scoped category(ctx.category, Category::communication_buffers);
  std::deque<Tensor> in_flight;
  for (const Bucket& bucket : assign_buckets(tensors, {bucket_bytes})) {
    if (in_flight.size() == kMaxInFlight) in_flight.pop_front();
    in_flight.push_back(flatten(ctx, tensors, bucket));
    broadcast(ctx, group, in_flight.back());
    unflatten(ctx, in_flight.back(), tensors, bucket);
  }
  while (!in_flight.empty()) in_flight.pop_front();
}

}  // namespace qlp
