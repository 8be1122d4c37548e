// A picture of an allocator's segments, for snapshots and tests.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/block.h"

namespace qlp {

/// A segment, or a mapped run of an expandable one, with its blocks in address order.
struct SegmentView {
  enum class State : std::uint8_t { allocated, pending_free, free };
  struct Part {
    Block block;
    State state = State::free;
  };

  std::uint64_t address = 0;
  std::uint64_t size = 0;
  StreamId stream = 0;
  bool small = false;  ///< of the pool for requests up to 1 MiB
  bool expandable = false;
  std::vector<Part> parts;
};

}  // namespace qlp
