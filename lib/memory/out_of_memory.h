// The exception of an allocation for which there is no room.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "memory/memory_stats.h"

namespace qlp {

/// Thrown when no memory is left after everything unused was given back.
class OutOfMemory : public std::runtime_error {
 public:
  OutOfMemory(std::uint64_t requested, std::uint64_t capacity, const MemoryStats& stats);

  std::uint64_t requested() const { return requested_; }
  std::uint64_t capacity() const { return capacity_; }  ///< of the device, or the part that the process may take
  const MemoryStats& stats() const { return stats_; }   ///< at the time

 private:
  std::uint64_t requested_;
  std::uint64_t capacity_;
  MemoryStats stats_;
};

}  // namespace qlp
