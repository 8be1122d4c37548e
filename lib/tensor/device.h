// Where tensors live: an allocator, the record of what it was asked for, and what computes: nothing, on a dry device.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/caching_allocator.h"
#include "memory/host_memory.h"
#include "memory/timeline.h"
#include "tensor/work.h"

namespace qlp {

/// The thread that launches work. PyTorch keeps one cuBLAS handle, and so one workspace, per thread and stream:
/// the main thread runs the forward pass, a thread of autograd the backward pass (ATen/cuda/CublasHandlePool.cpp).
enum class LaunchThread : std::uint8_t { main, autograd };

/// What differs between GPUs and library versions in what the libraries below PyTorch take from its allocator.
struct DeviceTraits {
  std::uint64_t cublas_workspace_bytes = 0;    ///< of one handle on one stream
  std::uint64_t cublaslt_workspace_bytes = 0;  ///< of one call; 0: it uses that of the handle
  std::uint32_t compute_capability = 80;
  std::uint32_t sm_count = 108;      ///< streaming multiprocessors (multi_processor_count)
  std::uint32_t cuda_toolkit = 128;  ///< that PyTorch was built with: 128 for 12.8
  PinnedReuse pinned_reuse = PinnedReuse::same_size;
};

class Kernels;       // tensor/kernels.h
class Communicator;  // tensor/communicator.h
class Streams;       // tensor/streams.h

/// What a device that computes has beside memory; nothing of it on the dry device.
struct Compute {
  Kernels* kernels = nullptr;            ///< for tensors on the device, and for copies to and from it
  Kernels* host_kernels = nullptr;       ///< for tensors in host memory
  Communicator* communicator = nullptr;  ///< none: this rank is alone
  bool poisons = false;                  ///< memory without an owner is overwritten, so that its use shows
  bool answers = true;                   ///< what is read back was computed; a GPU that keeps books only has zeros
  Streams* streams = nullptr;            ///< none: work is done when its call returns
};

class Device {
 public:
  Device(CachingAllocator& allocator, Timeline& timeline, DeviceTraits traits, const Compute& compute = {})
      : allocator_(allocator), timeline_(timeline), traits_(traits), compute_(compute), host_(traits.pinned_reuse) {}

  const Compute& compute() const { return compute_; }

  const DeviceTraits& traits() const { return traits_; }
  CachingAllocator& allocator() { return allocator_; }
  Timeline& timeline() { return timeline_; }
  /// What is asked of the hardware, of the phase that runs now.
  PhaseWork& work();
  /// Of all phases, as they are numbered in the timeline.
  std::vector<PhaseWork> take_work();
  /// The memory of the process that drives the device.
  HostMemory& host() { return host_; }

  /// A block of `bytes` > 0 on `stream`. Throws OutOfMemory.
  Block* allocate(std::uint64_t bytes, StreamId stream, AllocationLabel label);
  void free(Block* block);
  void record_stream(Block* block, StreamId stream);
  void relabel(const Block* block, AllocationLabel label) { timeline_.relabelled(block->tag, label); }

  void synchronize();
  void empty_cache();
  /// The run is over: what still lives may go without being recorded or given back.
  void retire() { retired_ = true; }
  bool retired() const { return retired_; }

  /// What the first matrix product of a thread on a stream takes, and keeps.
  void use_cublas(LaunchThread thread, StreamId stream);

 private:
  struct Workspace {
    LaunchThread thread;
    StreamId stream;
  };
  void poison(const Block& block);

  CachingAllocator& allocator_;
  Timeline& timeline_;
  DeviceTraits traits_;
  Compute compute_;
  HostMemory host_;
  std::vector<Workspace> workspaces_;
  std::vector<PhaseWork> work_;
  bool retired_ = false;
};

}  // namespace qlp
