#include "nullgpu/virtual_memory.h"

#include <map>
#include <mutex>
#include <unordered_set>

#include "nullgpu/books.h"
#include "nullgpu/device.h"
#include "nullgpu/status.h"

namespace nullgpu {
namespace {

struct Mapping {
  std::uintptr_t end;
  Physical* memory;
};

struct Registry {
  std::unordered_set<Physical*> memory;
  std::map<std::uintptr_t, Mapping> mappings;  // by begin
};

Registry& registry() {
  static Registry* const kRegistry = new Registry;
  return *kRegistry;
}

using Guard = std::lock_guard<Books>;

Physical* find(std::uint64_t handle) {
  auto* memory = reinterpret_cast<Physical*>(handle);
  return registry().memory.contains(memory) ? memory : nullptr;
}

void drop_if_unused(Physical* memory) {
  if (memory->holders == 0 && memory->mappings == 0) {
    if (!memory->host) {
      Books::get().give(memory->device, memory->bytes);
    }
    registry().memory.erase(memory);
    delete memory;
  }
}

}  // namespace

int create_physical(std::uint64_t* handle, std::size_t bytes, int device, bool host, int handle_types) {
  const Guard guard(Books::get());
  if (handle == nullptr || bytes == 0 || bytes % kGranule != 0) {
    return invalid_value;
  }
  if (!host) {
    if (const int status = use_device(device)) {
      return status;
    }
    if (const int status = Books::get().take(device, bytes)) {
      return status;
    }
  }
  auto* memory = new Physical{bytes, device, host, handle_types};
  registry().memory.insert(memory);
  *handle = reinterpret_cast<std::uint64_t>(memory);
  return ok;
}

int release_physical(std::uint64_t handle) {
  const Guard guard(Books::get());
  Physical* const memory = find(handle);
  if (memory == nullptr || memory->holders == 0) {
    return invalid_value;
  }
  --memory->holders;
  drop_if_unused(memory);
  return ok;
}

const Physical* find_physical(std::uint64_t handle) {
  const Guard guard(Books::get());
  return find(handle);
}

int retain_physical(std::uint64_t* handle, const void* address) {
  const Guard guard(Books::get());
  auto& mappings = registry().mappings;
  auto after = mappings.upper_bound(reinterpret_cast<std::uintptr_t>(address));
  if (after == mappings.begin() || std::prev(after)->second.end <= reinterpret_cast<std::uintptr_t>(address)) {
    return invalid_value;
  }
  Physical* const memory = std::prev(after)->second.memory;
  ++memory->holders;
  *handle = reinterpret_cast<std::uint64_t>(memory);
  return ok;
}

int reserve_range(std::uintptr_t* address, std::size_t bytes) {
  if (bytes == 0 || bytes % kGranule != 0) {
    return invalid_value;
  }
  void* p = nullptr;
  const int status = Books::get().allocate(&p, bytes, Kind::range, current_device(), 0);
  *address = reinterpret_cast<std::uintptr_t>(p);
  return status;
}

int free_range(std::uintptr_t address, std::size_t bytes) {
  const Guard guard(Books::get());
  const auto& mappings = registry().mappings;
  const auto first = mappings.lower_bound(address);
  if (first != mappings.end() && first->first < address + bytes) {
    return invalid_value;  // still mapped
  }
  Block block{};
  if (!Books::get().find(reinterpret_cast<void*>(address), block) || block.address != address || block.bytes != bytes) {
    return invalid_value;
  }
  return Books::get().release(reinterpret_cast<void*>(address), Kind::range);
}

int map_range(std::uintptr_t address, std::size_t bytes, std::size_t offset, std::uint64_t handle) {
  const Guard guard(Books::get());
  Physical* const memory = find(handle);
  Block block{};
  if (memory == nullptr || bytes == 0 || address % kGranule != 0 || offset + bytes > memory->bytes ||
      !Books::get().find(reinterpret_cast<void*>(address), block) || block.kind != Kind::range ||
      address + bytes > block.address + block.bytes) {
    return invalid_value;
  }
  auto& mappings = registry().mappings;
  const auto after = mappings.lower_bound(address);
  if ((after != mappings.end() && after->first < address + bytes) ||
      (after != mappings.begin() && std::prev(after)->second.end > address)) {
    return already_mapped;
  }
  ++memory->mappings;
  mappings.emplace(address, Mapping{address + bytes, memory});
  return ok;
}

int unmap_range(std::uintptr_t address, std::size_t bytes) {
  const Guard guard(Books::get());
  auto& mappings = registry().mappings;
  if (!is_mapped(address, bytes, nullptr) || !mappings.contains(address)) {
    return invalid_value;
  }
  auto at = mappings.find(address);
  while (at != mappings.end() && at->first < address + bytes) {
    if (at->second.end > address + bytes) {
      return invalid_value;  // a mapping goes as a whole
    }
    Physical* const memory = at->second.memory;
    --memory->mappings;
    at = mappings.erase(at);
    drop_if_unused(memory);
  }
  Books::get().known().forget(address, address + bytes);
  return ok;
}

bool is_mapped(std::uintptr_t address, std::size_t bytes, int* device) {
  const Guard guard(Books::get());
  const auto& mappings = registry().mappings;
  auto at = mappings.upper_bound(address);
  if (at == mappings.begin()) {
    return false;
  }
  --at;
  if (device != nullptr) {
    *device = at->second.memory->device;
  }
  std::uintptr_t reached = address;
  while (at != mappings.end() && at->first <= reached && reached < address + bytes) {
    if (at->second.end <= reached) {
      return false;
    }
    reached = at->second.end;
    ++at;
  }
  return reached >= address + bytes;
}

}  // namespace nullgpu
