#include "tensor/device.h"

#include <algorithm>
#include <utility>

#include "tensor/kernels.h"
#include "tensor/op.h"
#include "tensor/streams.h"

namespace qlp {

Block* Device::allocate(std::uint64_t bytes, StreamId stream, AllocationLabel label) {
  Block* block = allocator_.allocate(bytes, stream);
  block->tag = timeline_.allocated(*block, label, allocator_.stats());
  if (compute_.poisons) poison(*block);
  return block;
}

void Device::free(Block* block) {
  if (retired_) return;
  if (compute_.poisons) poison(*block);
  timeline_.freed(block->tag);
  allocator_.free(block);
}

void Device::poison(const Block& block) {
  // What is larger is a buffer of a runtime, mostly empty, whose pages shall not all be touched.
  constexpr std::uint64_t kMost = std::uint64_t{16} << 20;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what the allocator knows
  compute_.kernels->poison(block.stream, reinterpret_cast<void*>(block.address), std::min(block.requested, kMost));
}

void Device::record_stream(Block* block, StreamId stream) {
  timeline_.stream_recorded(block->tag, stream);
  allocator_.record_stream(block, stream);
}

PhaseWork& Device::work() {
  work_.resize(timeline_.phases().size());
  return work_.back();
}

std::vector<PhaseWork> Device::take_work() {
  work_.resize(timeline_.phases().size());
  return std::exchange(work_, {});
}

void Device::synchronize() {
  timeline_.synchronized();
  if (compute_.streams) compute_.streams->synchronize();
  allocator_.synchronize();
}

void Device::empty_cache() {
  timeline_.cache_emptied();
  if (compute_.streams) compute_.streams->synchronize();
  allocator_.empty_cache();
}

void Device::use_cublas(LaunchThread thread, StreamId stream) {
  if (traits_.cublas_workspace_bytes == 0) return;
  for (const auto& known : workspaces_)
    if (known.thread == thread && known.stream == stream) return;
  workspaces_.push_back({thread, stream});
  const Block* block = allocate(traits_.cublas_workspace_bytes, stream,
                                {Category::workspace, static_cast<std::uint32_t>(Op::cublas_workspace), 0});
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what the allocator knows
  void* const data = reinterpret_cast<void*>(block->address);
  if (compute_.streams) compute_.streams->use_workspace(stream, data, block->requested);
}

}  // namespace qlp
