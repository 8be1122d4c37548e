// What FSDP2 allocates around its collectives (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py).
#pragma once

#include <vector>

#include "shard/fsdp2_param.h"

namespace qlp {

/// Streams beside the compute stream on which FSDP2 allocates.
inline constexpr StreamId kCopyInStream = 1;
inline constexpr StreamId kReduceScatterStream = 2;
inline constexpr StreamId kAllReduceStream = 3;

/// foreach_all_gather over `group` on `stream`: gives the gathered, flat parameters; what was cast or copied from the
/// host for it lives as long as the call.
Tensor all_gather(Context& ctx, const std::vector<Fsdp2Param>& params, const RankGroup& group, StreamId stream);

/// foreach_all_gather_copy_out of what was gathered over `ranks`: the whole parameters, each in its own memory.
void copy_out(Context& ctx, const Tensor& gathered, std::vector<Fsdp2Param>& params, std::int64_t ranks);

/// The whole parameters straight from the shards of the only rank (torch 2.9 on).
void copy_shards(Context& ctx, std::vector<Fsdp2Param>& params);

/// A parameter and its whole gradient on this rank.
struct UnshardedGrad {
  Fsdp2Param* param = nullptr;
  Tensor grad;
};

/// What a reduction leaves behind, to be kept while it may run.
struct Reduction {
  Tensor reduce_scatter_input;
  Tensor all_reduce_input;  ///< none without a replicate dimension
};

/// foreach_reduce: the gradients are dropped on the way, and the shards of their sums become, or are added to, those of
/// the sharded parameters.
Reduction reduce(Context& ctx, std::vector<UnshardedGrad> grads, const Fsdp2Options& options);

}  // namespace qlp
