// A dry device whose allocations are written down, to be laid beside those of the real stack.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "autograd/engine.h"
#include "memory/caching_allocator.h"
#include "tensor/context.h"
#include "tensor/factories.h"

namespace qlp::test {

/// Requested bytes in order: positive when taken, negative when given back.
using Events = std::vector<std::int64_t>;

class Recorder final : public AllocatorObserver {
 public:
  void on(const AllocatorEvent& event) override {
    const auto bytes = static_cast<std::int64_t>(event.bytes);
    if (event.action == AllocatorEvent::Action::alloc) events_.push_back(bytes);
    if (event.action == AllocatorEvent::Action::free_requested) events_.push_back(-bytes);
  }
  /// What has happened since the last call.
  Events take() { return std::exchange(events_, {}); }

 private:
  Events events_;
};

struct DryDevice {
  CounterSource source;
  CachingAllocator allocator{AllocatorConfig{}, source};
  Timeline timeline;
  Device device;
  Engine engine;
  Context ctx;
  Recorder recorder;

  /// Both threads have their cuBLAS workspaces already.
  explicit DryDevice(DeviceTraits traits = {})
      : device(allocator, timeline, with_workspace(traits)), ctx(device, engine) {
    timeline.begin_phase("test", allocator.stats());
    device.use_cublas(LaunchThread::main, 0);
    device.use_cublas(LaunchThread::autograd, 0);
    allocator.set_observer(&recorder);
  }
  ~DryDevice() { allocator.set_observer(nullptr); }
  DryDevice(const DryDevice&) = delete;
  DryDevice& operator=(const DryDevice&) = delete;

  Tensor tensor(const Shape& shape, DType dtype) {
    Tensor out = empty(ctx, shape, dtype, Op::input);
    recorder.take();
    return out;
  }

 private:
  static DeviceTraits with_workspace(DeviceTraits traits) {
    traits.cublas_workspace_bytes = 8519680;
    return traits;
  }
};

}  // namespace qlp::test
