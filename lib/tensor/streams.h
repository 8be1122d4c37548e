// The order of work between the streams of a device that computes. Within a stream work is done in the order of calls.
#pragma once

#include "memory/block.h"

namespace qlp {

class Streams {
 public:
  Streams() = default;
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  virtual ~Streams() = default;

  /// What is queued on `stream` from now on waits for what is queued on `other` so far (cudaStreamWaitEvent).
  virtual void wait(StreamId stream, StreamId other) = 0;
  /// Returns when all that is queued has been done (cudaDeviceSynchronize).
  virtual void synchronize() = 0;
  /// Memory of the allocator that matrix products on a stream may use from now on.
  virtual void use_workspace(StreamId stream, void* data, std::uint64_t bytes) = 0;
};

}  // namespace qlp
