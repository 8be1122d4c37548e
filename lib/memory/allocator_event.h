// What an allocator tells of its doings.
#pragma once

#include <cstdint>

#include "memory/block.h"

namespace qlp {

/// What happened, in the words of torch's memory history. `bytes` are the requested ones where it is about a block.
struct AllocatorEvent {
  enum class Action : std::uint8_t {
    alloc,
    free_requested,  ///< the tensor is gone
    free_completed,  ///< and no stream uses the block any more
    segment_alloc,
    segment_free,
    segment_map,  ///< part of an expandable segment
    segment_unmap,
    oom,  ///< `address` is 0
  };
  Action action;
  StreamId stream;
  std::uint64_t bytes;
  std::uint64_t address;
};

class AllocatorObserver {
 public:
  AllocatorObserver() = default;
  AllocatorObserver(const AllocatorObserver&) = delete;
  AllocatorObserver& operator=(const AllocatorObserver&) = delete;
  virtual ~AllocatorObserver() = default;

  virtual void on(const AllocatorEvent& event) = 0;
};

}  // namespace qlp
