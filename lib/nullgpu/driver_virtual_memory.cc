// The CUDA driver: virtual memory management.
#include <cstdint>
#include <cstring>

#include "nullgpu/books.h"
#include "nullgpu/entry.h"
#include "nullgpu/graphs.h"
#include "nullgpu/ipc.h"
#include "nullgpu/virtual_memory.h"

using namespace nullgpu;

namespace {

struct Location {
  int type;  // 1 a device, 2 to 4 the host
  int id;
};

// CUmemAllocationProp: 32 bytes.
struct Properties {
  int type;
  int handle_types;
  Location location;
  void* windows;
  unsigned char flags[8];
};

struct Access {
  Location location;
  int flags;
};

constexpr int kFile = 1;    // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr int kFabric = 8;  // CU_MEM_HANDLE_TYPE_FABRIC

}  // namespace

QLP_EXPORT int cuMemGetAllocationGranularity(std::size_t* bytes, const Properties* properties, int) {
  return driver(__func__, [&] {
    if (bytes == nullptr || properties == nullptr) {
      return invalid_value;
    }
    *bytes = kGranule;
    return ok;
  });
}

QLP_EXPORT int cuMemAddressReserve(std::uintptr_t* address, std::size_t bytes, std::size_t, std::uintptr_t,
                                   unsigned long long) {
  return driver(__func__, [&] { return reserve_range(address, bytes); });
}

QLP_EXPORT int cuMemAddressFree(std::uintptr_t address, std::size_t bytes) {
  return driver(__func__, [&] { return free_range(address, bytes); });
}

// Allowed while a stream is captured: PyTorch's expandable segments grow there, with no guard
// (c10/cuda/CUDACachingAllocator.cpp, ExpandableSegment::map).
QLP_EXPORT int cuMemCreate(std::uint64_t* handle, std::size_t bytes, const Properties* p, unsigned long long) {
  return driver(__func__, [&] {
    if (p == nullptr || p->type != 1) {  // CU_MEM_ALLOCATION_TYPE_PINNED
      return static_cast<int>(invalid_value);
    }
    return create_physical(handle, bytes, p->location.id, p->location.type != 1, p->handle_types);
  });
}

QLP_EXPORT int cuMemRelease(std::uint64_t handle) {
  return driver(__func__, [&] { return release_physical(handle); });
}

QLP_EXPORT int cuMemMap(std::uintptr_t address, std::size_t bytes, std::size_t offset, std::uint64_t handle,
                        unsigned long long) {
  return driver(__func__, [&] { return map_range(address, bytes, offset, handle); });
}

QLP_EXPORT int cuMemUnmap(std::uintptr_t address, std::size_t bytes) {
  return driver(__func__, [&] { return unmap_range(address, bytes); });
}

QLP_EXPORT int cuMemSetAccess(std::uintptr_t address, std::size_t bytes, const Access*, std::size_t) {
  return driver(__func__, [&] { return is_mapped(address, bytes, nullptr) ? ok : invalid_value; });
}

QLP_EXPORT int cuMemGetAccess(unsigned long long* flags, const Location*, std::uintptr_t address) {
  return driver(__func__, [&] {
    *flags = is_mapped(address, 1, nullptr) ? 3 : 0;
    return ok;
  });
}

QLP_EXPORT int cuMemRetainAllocationHandle(std::uint64_t* handle, const void* address) {
  return driver(__func__, [&] { return retain_physical(handle, address); });
}

QLP_EXPORT int cuMemGetAllocationPropertiesFromHandle(Properties* properties, std::uint64_t handle) {
  return driver(__func__, [&] {
    const Physical* memory = find_physical(handle);
    if (memory == nullptr) {
      return invalid_value;
    }
    *properties = Properties{1, memory->requested_handle_types, {memory->host ? 2 : 1, memory->device}, nullptr, {}};
    return ok;
  });
}

QLP_EXPORT int cuMemExportToShareableHandle(void* out, std::uint64_t handle, int type, unsigned long long) {
  return driver(__func__, [&] {
    const Physical* memory = find_physical(handle);
    if (memory == nullptr || (type != kFile && type != kFabric)) {
      return memory == nullptr ? invalid_value : not_supported;
    }
    if (type == kFabric) {
      const IpcHandle description{{memory->bytes}};
      std::memcpy(out, &description, sizeof description);
      return ok;
    }
    const int file = export_file(memory->bytes);
    std::memcpy(out, &file, sizeof file);
    return file < 0 ? invalid_value : ok;
  });
}

// A descriptor comes as the pointer's own value, a fabric handle behind it.
QLP_EXPORT int cuMemImportFromShareableHandle(std::uint64_t* handle, void* shared, int type) {
  return driver(__func__, [&] {
    std::size_t bytes = 0;
    if (type == kFile) {
      bytes = bytes_of_file(static_cast<int>(reinterpret_cast<std::intptr_t>(shared)));
    } else if (type == kFabric) {
      std::memcpy(&bytes, shared, sizeof bytes);
    }
    return create_physical(handle, bytes, current_device(), true, type);
  });
}
