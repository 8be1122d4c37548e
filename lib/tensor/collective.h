// Communication: where a runtime calls torch.distributed, or copies between host and GPU, it says so here. What is said
// is recorded, and sent where the device computes.
#pragma once

#include <cstdint>

#include "tensor/communicator.h"
#include "tensor/context.h"

namespace qlp {

/// This rank takes part in a collective of `group`; `bytes` as in CollectiveEvent. A group of one sends nothing. For
/// what carries no numbers of the model: it is only recorded.
void communicate(Context& ctx, Collective kind, const RankGroup& group, std::uint64_t bytes);

/// This rank's place in a group; 0 where nothing is sent.
std::int64_t own_place(const Context& ctx, const RankGroup& group);

// Tensors lie densely. A group of one copies.

/// `out` holds what all ranks have in `in`, in the order of ranks.
void all_gather(Context& ctx, const RankGroup& group, const Tensor& out, const Tensor& in);
/// `out` becomes this rank's part of the sum or mean of the ranks' `in`.
void reduce_scatter(Context& ctx, const RankGroup& group, const Tensor& out, const Tensor& in, ReduceOp op);
/// In place, as are the two below. `root`: a place in the group.
void all_reduce(Context& ctx, const RankGroup& group, const Tensor& tensor, ReduceOp op);
void reduce(Context& ctx, const RankGroup& group, const Tensor& tensor, ReduceOp op, std::int64_t root);
void broadcast(Context& ctx, const RankGroup& group, const Tensor& tensor, std::int64_t root = 0);
/// Elements go to each place in the group and come from each, one behind the other.
void all_to_all(Context& ctx, const RankGroup& group, const Tensor& out, const Counts& from, const Tensor& in,
                const Counts& to);
/// `in` goes to a place in the group, and `out`, which is as large, comes from one, at once. Nothing is recorded:
/// either may have been before.
void exchange(Context& ctx, const RankGroup& group, const Tensor& in, std::int64_t to, const Tensor& out,
              std::int64_t from);
/// To and from another place in the group. Nothing is recorded here either.
void send(Context& ctx, const RankGroup& group, const Tensor& tensor, std::int64_t to);
void recv(Context& ctx, const RankGroup& group, const Tensor& tensor, std::int64_t from);

/// Bytes go to the GPU, or from it, beside those of to_device() and to_host().
void copy_to_device(Context& ctx, std::uint64_t bytes);
void copy_to_host(Context& ctx, std::uint64_t bytes);

}  // namespace qlp
