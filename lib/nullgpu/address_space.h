// Addresses for the null GPU's memory: large mappings that hold no memory until they are written to (MAP_NORESERVE),
// cut into ranges here, so that an allocation costs no system call and there is no limit on how many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "nullgpu/free_ranges.h"

namespace nullgpu {

/// Not synchronised. Ranges are handed out from high addresses to low ones, each below all before it, as the kernel
/// does with mappings: PyTorch's allocator prefers low addresses among equal blocks, so the order shows in its
/// statistics.
class AddressSpace {
 public:
  /// A range of at least `bytes`, aligned to `alignment` (a power of two); its bytes read as zero. 0: no room.
  std::uintptr_t allocate(std::size_t bytes, std::size_t alignment);
  /// Gives back a range whose bytes the caller has made read as zero again.
  void release(std::uintptr_t address, std::size_t bytes);
  bool contains(std::uintptr_t address) const;

 private:
  bool grow(std::size_t bytes);

  std::map<std::uintptr_t, std::uintptr_t> chunks_;  // begin to end
  std::uintptr_t low_ = 0;                           // of the newest chunk, all below this was never used ...
  std::uintptr_t low_end_ = 0;                       // ... down to here
  FreeRanges free_;
  std::size_t mapped_ = 0;
};

/// Makes these bytes of such memory read as zero and hold no memory, as far as whole pages go.
void drop_pages(std::uintptr_t address, std::size_t bytes);

}  // namespace nullgpu
