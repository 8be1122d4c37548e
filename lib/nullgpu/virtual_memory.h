// Virtual memory management: memory without an address (cuMemCreate), address ranges without memory
// (cuMemAddressReserve), and what is mapped where. Books are kept by the memory: it counts from its creation until it
// is neither held nor mapped.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nullgpu {

struct Physical {
  std::size_t bytes;
  int device;  // of memory on a device
  bool host;   // on the host, or another process's: does not count
  int requested_handle_types;
  int holders = 1;  // handles
  int mappings = 0;
};

int create_physical(std::uint64_t* handle, std::size_t bytes, int device, bool host, int handle_types);
int release_physical(std::uint64_t handle);
/// Null: no such handle.
const Physical* find_physical(std::uint64_t handle);
/// The memory mapped at this address, held once more.
int retain_physical(std::uint64_t* handle, const void* address);

int reserve_range(std::uintptr_t* address, std::size_t bytes);
int free_range(std::uintptr_t address, std::size_t bytes);
int map_range(std::uintptr_t address, std::size_t bytes, std::size_t offset, std::uint64_t handle);
int unmap_range(std::uintptr_t address, std::size_t bytes);
/// Whether all of it is mapped, and on which device it begins.
bool is_mapped(std::uintptr_t address, std::size_t bytes, int* device);

}  // namespace nullgpu
