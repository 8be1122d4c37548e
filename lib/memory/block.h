// A block as its users see it.
#pragma once

#include <cstdint>

namespace qlp {

/// 0 is the compute stream.
using StreamId = std::uint32_t;
inline constexpr StreamId kMaxStreams = 64;

/// A piece of a segment, handed out by a CachingAllocator and owned by it.
struct Block {
  std::uint64_t address = 0;
  std::uint64_t size = 0;       ///< bytes that it takes from its segment
  std::uint64_t requested = 0;  ///< bytes that were asked for
  StreamId stream = 0;
  std::uint32_t tag = 0;  ///< the user's, such as the number of the allocation in a Timeline; 0 in a new block
};

}  // namespace qlp
