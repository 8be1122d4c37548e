// The wire of a rank that is played alone: what the others would send is made of what it has itself.
#pragma once

#include "tensor/communicator.h"
#include "tensor/kernels.h"

namespace qlp {

/// Buffers, sizes and streams are those of a run with all ranks. Gathered parts are copies of this rank's own, sums are
/// of one, and what would come from another rank alone is zero; numbers mean nothing beyond being numbers.
class LoopbackCommunicator final : public Communicator {
 public:
  LoopbackCommunicator(Kernels& kernels, std::int64_t rank) : kernels_(kernels), rank_(rank) {}

  std::int64_t rank() const override { return rank_; }
  void all_gather(StreamId stream, const RankGroup& group, void* out, const void* in, std::int64_t count,
                  DType dtype) override;
  void reduce_scatter(StreamId stream, const RankGroup& group, void* out, const void* in, std::int64_t count,
                      DType dtype, ReduceOp op) override;
  void all_reduce(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                  ReduceOp op) override;
  void reduce(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype, ReduceOp op,
              std::int64_t root) override;
  void broadcast(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                 std::int64_t root) override;
  void all_to_all(StreamId stream, const RankGroup& group, void* out, const Counts& from, const void* in,
                  const Counts& to, DType dtype) override;
  void send(StreamId stream, const RankGroup& group, const void* data, std::int64_t count, DType dtype,
            std::int64_t to) override;
  void recv(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
            std::int64_t from) override;
  void exchange(StreamId stream, const RankGroup& group, const void* in, std::int64_t to, void* out, std::int64_t from,
                std::int64_t count, DType dtype) override;
  void barrier(const RankGroup& group) override;

 private:
  void copy(StreamId stream, void* out, const void* in, std::int64_t count, DType dtype);

  Kernels& kernels_;
  std::int64_t rank_;
};

}  // namespace qlp
