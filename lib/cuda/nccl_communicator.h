// The wire between GPUs: NCCL, never blocking for ever.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include <nccl.h>

#include "cuda/streams.h"
#include "tensor/communicator.h"
#include "verify/gpu.h"

namespace qlp {

/// All functions throw CommunicatorFailure: on NCCL's errors, also those that it finds later, and when the other ranks
/// do not come within the timeout. After a failure the communicators are aborted, not finished.
class NcclCommunicator final : public Communicator {
 public:
  using Clock = std::function<std::chrono::milliseconds()>;

  NcclCommunicator(CudaStreams& streams, const GpuWorld& world, Clock clock);
  ~NcclCommunicator() override;

  std::int64_t rank() const override { return world_.rank; }
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

  /// What NCCL found since: throws if another rank is gone.
  void check_health();
  /// Ends the communicators, of which none is left then. Those that are not finished are aborted.
  void finish();

 private:
  struct Member {
    RankGroup group;
    ncclComm_t handle = nullptr;
  };
  ncclComm_t of(const RankGroup& group) const;
  void make_groups();
  /// Waits until NCCL has done what it began.
  void settle(ncclComm_t handle, ncclResult_t status, const char* what);
  void fail(ncclComm_t handle, ncclResult_t status, const char* what);
  void abort_all();
  /// A few numbers that lie on the host: through memory of the device and back.
  void all_reduce_on_host(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                          ReduceOp op);

  CudaStreams& streams_;
  GpuWorld world_;
  Clock clock_;
  ncclComm_t all_ = nullptr;     ///< ranks of the job
  std::vector<Member> members_;  ///< of the groups, in their order
  void* token_ = nullptr;        ///< what a barrier sends, and numbers of the host on their way
  bool ended_ = false;           ///< finished or aborted
};

/// The bytes of a new ncclUniqueId.
std::string make_nccl_id();

}  // namespace qlp
