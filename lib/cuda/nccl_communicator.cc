#include "cuda/nccl_communicator.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "cuda/cuda_error.h"

namespace qlp {
namespace {

/// Between two looks at what NCCL is doing.
constexpr std::chrono::microseconds kPause{100};

constexpr std::size_t kTokenBytes = 4096;

bool on_host(const void* data) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, data), "asking where memory is");
  return attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged;
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return ncclFloat32;
    case DType::float16:
      return ncclFloat16;
    case DType::bfloat16:
      return ncclBfloat16;
    case DType::float64:
      return ncclFloat64;
    case DType::int64:
      return ncclInt64;
    case DType::int32:
      return ncclInt32;
    case DType::int8:
      return ncclInt8;
    case DType::uint8:
    case DType::boolean:
      return ncclUint8;
    case DType::int16:
      break;
  }
  throw std::logic_error("NCCL does not send " + std::string(name_of(dtype)));
}

ncclRedOp_t operation_of(ReduceOp op) {
  return op == ReduceOp::average ? ncclAvg : op == ReduceOp::max ? ncclMax : ncclSum;
}

ncclConfig_t never_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

}  // namespace

std::string make_nccl_id() {
  ncclUniqueId id;
  const ncclResult_t status = ncclGetUniqueId(&id);
  if (status != ncclSuccess) throw CommunicatorFailure(std::string("NCCL's rendezvous: ") + ncclGetErrorString(status));
  return {id.internal, sizeof id.internal};
}

NcclCommunicator::NcclCommunicator(CudaStreams& streams, const GpuWorld& world, Clock clock)
    : streams_(streams), world_(world), clock_(std::move(clock)) {
  ncclUniqueId id{};
  if (world.id.size() != sizeof id.internal) throw CommunicatorFailure("a rendezvous that is none of NCCL's");
  std::memcpy(id.internal, world.id.data(), sizeof id.internal);
  check(cudaMalloc(&token_, kTokenBytes), "taking memory for barriers");
  try {
    ncclConfig_t config = never_blocking();
    const ncclResult_t status =
        ncclCommInitRankConfig(&all_, static_cast<int>(world.world_size), id, static_cast<int>(world.rank), &config);
    settle(all_, status, "making the communicator");
    make_groups();
  } catch (...) {
    abort_all();
    cudaFree(token_);
    throw;
  }
}

void NcclCommunicator::make_groups() {
  for (const RankGroup& group : world_.groups) {
    if (group.size == 1 || (group.size == world_.world_size && group.stride == 1)) continue;
    const auto same = [&](const Member& m) { return m.group.size == group.size && m.group.stride == group.stride; };
    if (std::any_of(members_.begin(), members_.end(), same)) continue;
    const std::int64_t first = rank_at(group, world_.rank, 0);
    Member& member = members_.emplace_back(Member{group});
    ncclConfig_t config = never_blocking();
    const ncclResult_t status =
        ncclCommSplit(all_, static_cast<int>(first), static_cast<int>(world_.rank), &member.handle, &config);
    settle(all_, status, "splitting the communicator");
    settle(member.handle, ncclInProgress, "splitting the communicator");
  }
}

void NcclCommunicator::finish() {
  streams_.synchronize();
  for (auto member = members_.rbegin(); member != members_.rend(); ++member)
    settle(member->handle, ncclCommFinalize(member->handle), "finishing a communicator");
  settle(all_, ncclCommFinalize(all_), "finishing the communicator");
  ended_ = true;
  for (const Member& member : members_) ncclCommDestroy(member.handle);
  ncclCommDestroy(all_);
}

NcclCommunicator::~NcclCommunicator() {
  abort_all();
  cudaFree(token_);
}

ncclComm_t NcclCommunicator::of(const RankGroup& group) const {
  if (ended_) throw CommunicatorFailure("the communicators have ended");
  if (group.size == world_.world_size && group.stride == 1) return all_;
  for (const Member& member : members_)
    if (member.group.size == group.size && member.group.stride == group.stride) return member.handle;
  throw std::logic_error("a group of ranks that nobody announced");
}

void NcclCommunicator::settle(ncclComm_t handle, ncclResult_t status, const char* what) {
  const auto deadline = clock_() + world_.timeout;
  while (status == ncclInProgress) {
    const ncclResult_t asked = ncclCommGetAsyncError(handle, &status);
    if (asked != ncclSuccess) status = asked;
    if (status != ncclInProgress) break;
    if (clock_() > deadline) {
      abort_all();
      throw CommunicatorFailure(std::string(what) + ": the other ranks did not come within " +
                                std::to_string(world_.timeout.count() / 1000) + " s");
    }
    std::this_thread::sleep_for(kPause);
  }
  if (status != ncclSuccess) fail(handle, status, what);
}

void NcclCommunicator::fail(ncclComm_t handle, ncclResult_t status, const char* what) {
  std::string text = std::string("NCCL, ") + what + ": " + ncclGetErrorString(status);
  if (const char* last = ncclGetLastError(handle); last && *last) text += std::string(" (") + last + ")";
  abort_all();
  throw CommunicatorFailure(text);
}

void NcclCommunicator::abort_all() {
  if (std::exchange(ended_, true)) return;
  for (const Member& member : members_)
    if (member.handle) ncclCommAbort(member.handle);
  if (all_) ncclCommAbort(all_);
}

void NcclCommunicator::check_health() {
  if (ended_) return;
  const auto look = [&](ncclComm_t handle) {
    ncclResult_t status = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(handle, &status);
    if (asked != ncclSuccess) status = asked;
    if (status != ncclSuccess && status != ncclInProgress) fail(handle, status, "on its own");
  };
  look(all_);
  for (std::size_t i = 0; i < members_.size() && !ended_; ++i) look(members_[i].handle);
}

void NcclCommunicator::all_gather(StreamId stream, const RankGroup& group, void* out, const void* in,
                                  std::int64_t count, DType dtype) {
  const ncclComm_t to = of(group);
  settle(to, ncclAllGather(in, out, size(count), type_of(dtype), to, streams_[stream]), "all_gather");
}

void NcclCommunicator::reduce_scatter(StreamId stream, const RankGroup& group, void* out, const void* in,
                                      std::int64_t count, DType dtype, ReduceOp op) {
  const ncclComm_t to = of(group);
  settle(to, ncclReduceScatter(in, out, size(count), type_of(dtype), operation_of(op), to, streams_[stream]),
         "reduce_scatter");
}

void NcclCommunicator::all_reduce(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                                  ReduceOp op) {
  if (on_host(data)) return all_reduce_on_host(stream, group, data, count, dtype, op);
  const ncclComm_t to = of(group);
  settle(to, ncclAllReduce(data, data, size(count), type_of(dtype), operation_of(op), to, streams_[stream]),
         "all_reduce");
}

void NcclCommunicator::all_reduce_on_host(StreamId stream, const RankGroup& group, void* data, std::int64_t count,
                                          DType dtype, ReduceOp op) {
  const std::size_t bytes = size(count) * size_of(dtype);
  if (bytes > kTokenBytes) throw std::logic_error("more numbers of the host than are summed");
  streams_.finish(stream);  // a copy to `data` may be on its way
  check(cudaMemcpyAsync(token_, data, bytes, cudaMemcpyHostToDevice, streams_[stream]), "a copy to the device");
  all_reduce(stream, group, token_, count, dtype, op);
  check(cudaMemcpyAsync(data, token_, bytes, cudaMemcpyDeviceToHost, streams_[stream]), "a copy to the host");
  streams_.finish(stream);
}

void NcclCommunicator::reduce(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                              ReduceOp op, std::int64_t root) {
  const ncclComm_t to = of(group);
  settle(to,
         ncclReduce(data, data, size(count), type_of(dtype), operation_of(op), static_cast<int>(root), to,
                    streams_[stream]),
         "reduce");
}

void NcclCommunicator::broadcast(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                                 std::int64_t root) {
  const ncclComm_t to = of(group);
  settle(to, ncclBroadcast(data, data, size(count), type_of(dtype), static_cast<int>(root), to, streams_[stream]),
         "broadcast");
}

void NcclCommunicator::all_to_all(StreamId stream, const RankGroup& group, void* out, const Counts& from,
                                  const void* in, const Counts& to, DType dtype) {
  const ncclComm_t through = of(group);
  const ncclDataType_t type = type_of(dtype);
  const auto* read = static_cast<const std::byte*>(in);
  auto* written = static_cast<std::byte*>(out);
  ncclGroupStart();
  for (std::size_t place = 0; place < to.size(); ++place) {
    const int peer = static_cast<int>(place);
    if (to[place]) ncclSend(read, size(to[place]), type, peer, through, streams_[stream]);
    if (from[place]) ncclRecv(written, size(from[place]), type, peer, through, streams_[stream]);
    read += size(to[place]) * size_of(dtype), written += size(from[place]) * size_of(dtype);
  }
  settle(through, ncclGroupEnd(), "all_to_all");
}

void NcclCommunicator::send(StreamId stream, const RankGroup& group, const void* data, std::int64_t count, DType dtype,
                            std::int64_t to) {
  const ncclComm_t through = of(group);
  settle(through, ncclSend(data, size(count), type_of(dtype), static_cast<int>(to), through, streams_[stream]), "send");
}

void NcclCommunicator::recv(StreamId stream, const RankGroup& group, void* data, std::int64_t count, DType dtype,
                            std::int64_t from) {
  const ncclComm_t through = of(group);
  settle(through, ncclRecv(data, size(count), type_of(dtype), static_cast<int>(from), through, streams_[stream]),
         "recv");
}

void NcclCommunicator::exchange(StreamId stream, const RankGroup& group, const void* in, std::int64_t to, void* out,
                                std::int64_t from, std::int64_t count, DType dtype) {
  const ncclComm_t through = of(group);
  ncclGroupStart();
  ncclSend(in, size(count), type_of(dtype), static_cast<int>(to), through, streams_[stream]);
  ncclRecv(out, size(count), type_of(dtype), static_cast<int>(from), through, streams_[stream]);
  settle(through, ncclGroupEnd(), "an exchange");
}

void NcclCommunicator::barrier(const RankGroup& group) {
  if (group.size == 1) return;
  check(cudaMemsetAsync(token_, 0, sizeof(float), streams_[0]), "a barrier");
  all_reduce(0, group, token_, 1, DType::float32, ReduceOp::sum);
  streams_.finish(0);
}

}  // namespace qlp
