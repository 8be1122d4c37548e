// Addresses for the null GPU's memory: large mappings that hold no memory until they are written to (MAP_NORESERVE),
// cut into ranges here, so that an allocation costs no system call and there is no limit on how many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "nullgpu/free_ranges.h"

namespace nullgpu {

/// Not synchronised. A range comes from the highest gap that holds it and 2 MiB of distance, as Linux gives mappings to
/// a process that aligns each to 2 MiB: PyTorch's allocator prefers low addresses among equal blocks, so that the order
/// of addresses shows in its statistics, and lib/memory's dry device has the same.
class AddressSpace {
 public:
  /// A range of whole granules, aligned to them; its bytes read as zero. 0: no room.
  std::uintptr_t allocate(std::size_t bytes);
  /// Gives back a range whose bytes the caller has made read as zero again.
  void release(std::uintptr_t address, std::size_t bytes);
  bool contains(std::uintptr_t address) const;

 private:
  bool grow(std::size_t bytes);

  std::map<std::uintptr_t, std::uintptr_t> chunks_;  // begin to end
  FreeRanges free_;
};

/// What memory is handed out in: the least that the driver takes at once, on every GPU since Volta.
inline constexpr std::size_t kGranule = std::size_t{2} << 20U;

/// Makes these bytes of such memory read as zero and hold no memory, as far as whole pages go.
void drop_pages(std::uintptr_t address, std::size_t bytes);

}  // namespace nullgpu
