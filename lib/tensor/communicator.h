// The wire between ranks, as NCCL has it. Buffers lie densely; sizes are in elements.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "memory/block.h"
#include "tensor/work.h"

namespace qlp {

/// Elements, for each place of a group.
using Counts = std::vector<std::int64_t>;

enum class ReduceOp : std::uint8_t { sum, average, max };

/// One rank's end. Every rank of a group calls the same functions in the same order; a group of one is never asked.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  /// Of this rank in the job.
  virtual std::int64_t rank() const = 0;

  /// `count` elements of each rank, in the order of ranks.
  virtual void all_gather(StreamId stream, const RankGroup& group, void* out, const void* in, std::int64_t count,
                          DType dtype) = 0;
  /// `count` elements for each rank; `out` may lie at this rank's place of `in`.
  virtual void reduce_scatter(StreamId stream, const RankGroup& group, void* out, const void* in, std::int64_t count,
                              DType dtype, ReduceOp op) = 0;
  /// In place.
  virtual void all_reduce(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                          ReduceOp op) = 0;
  /// In place at `root` (its place in the group); what the others have is undefined.
  virtual void reduce(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype, ReduceOp op,
                      std::int64_t root) = 0;
  /// In place, from `root` (its place in the group).
  virtual void broadcast(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                         std::int64_t root) = 0;
  /// to[i] elements go to place i of the group, from[i] come from there, one behind the other in the order of places;
  /// all at once, so that nobody waits for a rank that waits for it.
  virtual void all_to_all(StreamId stream, const RankGroup& group, void* out, const Counts& from, const void* in,
                          const Counts& to, DType dtype) = 0;
  /// To and from another place in the group.
  virtual void send(StreamId stream, const RankGroup& group, const void* data, std::int64_t count, DType dtype,
                    std::int64_t to) = 0;
  virtual void recv(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                    std::int64_t from) = 0;
  /// Both at once, `count` elements each, so that two ranks that send to each other do not wait for each other.
  virtual void exchange(StreamId stream, const RankGroup& group, const void* in, std::int64_t to, void* out,
                        std::int64_t from, std::int64_t count, DType dtype) = 0;
  /// Returns when all ranks of the group have called it.
  virtual void barrier(const RankGroup& group) = 0;
};

/// This rank's place in a group that it belongs to.
constexpr std::int64_t place_in(const RankGroup& group, std::int64_t rank) { return rank / group.stride % group.size; }
/// The rank in the job of another place in the group of `rank`.
constexpr std::int64_t rank_at(const RankGroup& group, std::int64_t rank, std::int64_t place) {
  return rank + (place - place_in(group, rank)) * group.stride;
}

}  // namespace qlp
