// Tensors that c10d sends together: which go into one buffer, and what a broadcast of all of them takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/collective.h"

namespace qlp {

/// Indices of the tensors that share a flat buffer.
using Bucket = std::vector<std::size_t>;

enum class BucketOrder {
  by_first_tensor,
  as_closed,  ///< those that never reached their limit come last
};

/// Packs tensors of one dtype, in the order given: a bucket is closed once it has reached its limit, so it may exceed
/// it. The n-th bucket of a dtype has the n-th of `limits` (bytes), the later ones the last
/// (compute_bucket_assignment_by_size in torch/csrc/distributed/c10d/reducer.cpp, torch 2.4 to 2.14).
std::vector<Bucket> assign_buckets(const std::vector<Tensor>& tensors, const std::vector<std::uint64_t>& limits,
                                   BucketOrder order = BucketOrder::by_first_tensor);

/// What DDP broadcasts at once (distributed.py, broadcast_bucket_size; fsdp/_init_utils.py,
/// PARAM_BROADCAST_BUCKET_SIZE).
inline constexpr std::uint64_t kBroadcastBytes = 250 << 20;

/// dist._broadcast_coalesced: bucket by bucket through a flat copy, two in flight (c10d/comm.cpp).
void broadcast_coalesced(Context& ctx, const std::vector<Tensor>& tensors, const RankGroup& group,
                         std::uint64_t bucket_bytes = kBroadcastBytes);

}  // namespace qlp
