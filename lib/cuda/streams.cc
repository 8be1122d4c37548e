#include "cuda/streams.h"

#include <chrono>
#include <thread>

#include "cuda/cuda_error.h"

namespace qlp {

CudaStreams::~CudaStreams() {
  for (const Stream& stream : streams_) {
    if (stream.event) cudaEventDestroy(stream.event);
    if (stream.handle) cudaStreamDestroy(stream.handle);
  }
}

CudaStreams::Stream& CudaStreams::made(StreamId stream) {
  Stream& one = streams_.at(stream);
  // Not in step with the default stream, on which nothing of ours runs.
  if (!one.handle) check(cudaStreamCreateWithFlags(&one.handle, cudaStreamNonBlocking), "making a stream");
  return one;
}

cudaStream_t CudaStreams::operator[](StreamId stream) { return made(stream).handle; }

void CudaStreams::wait(StreamId stream, StreamId other) {
  if (stream == other) return;
  Stream& before = made(other);
  if (!before.event) check(cudaEventCreateWithFlags(&before.event, cudaEventDisableTiming), "making an event");
  check(cudaEventRecord(before.event, before.handle), "recording an event");
  check(cudaStreamWaitEvent(made(stream).handle, before.event, 0), "waiting for an event");
}

// By looking again and again: a wait inside CUDA would not end when another rank has died.
void CudaStreams::finish(StreamId stream) {
  constexpr int kImpatient = 1000;  // looks without a pause between them
  const cudaStream_t handle = made(stream).handle;
  for (int looks = 0;; ++looks) {
    const cudaError_t status = cudaStreamQuery(handle);
    if (status != cudaErrorNotReady) return check(status, "work on a stream");
    if (watch_) watch_();
    if (looks > kImpatient) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void CudaStreams::synchronize() {
  for (StreamId stream = 0; stream < kMaxStreams; ++stream)
    if (streams_[stream].handle) finish(stream);
}

void CudaStreams::use_workspace(StreamId stream, void* data, std::uint64_t bytes) {
  if (products_) products_->set_workspace(stream, data, bytes);
}

}  // namespace qlp
