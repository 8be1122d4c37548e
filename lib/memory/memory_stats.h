// What an allocator counts, with the meanings of torch.cuda.memory_stats().
#pragma once

#include <cstdint>
#include <initializer_list>

namespace qlp {

struct MemoryStats {
  /// One figure in bytes: now, and the most since the last reset of the peaks.
  struct Figure {
    std::uint64_t current = 0;
    std::uint64_t peak = 0;

    void increase(std::uint64_t bytes) {
      current += bytes;
      if (current > peak) peak = current;
    }
    void decrease(std::uint64_t bytes) { current -= bytes; }
  };

  Figure requested;  ///< what the tensors of the active blocks asked for
  Figure allocated;  ///< blocks in use
  Figure active;     ///< and blocks whose tensor is gone, waiting for a stream
  Figure reserved;   ///< segments, or mapped parts of them

  std::uint64_t num_alloc_retries = 0;  ///< times the cache was given back to go on
  std::uint64_t num_ooms = 0;

  void reset_peaks() {
    for (Figure* figure : {&requested, &allocated, &active, &reserved}) figure->peak = figure->current;
  }
};

}  // namespace qlp
