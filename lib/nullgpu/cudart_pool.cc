// The CUDA runtime: stream-ordered memory.
#include <cstdint>
#include <cstring>

#include "nullgpu/books.h"
#include "nullgpu/entry.h"
#include "nullgpu/pools.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

struct Location {
  int type;  // 1: a device
  int id;
};

// cudaMemPoolProps begins with allocation type, handle types and the location; all else has no meaning here.
Location location_of(const void* properties) {
  Location location{};
  std::memcpy(&location, static_cast<const char*>(properties) + 8, sizeof location);
  return location;
}

int allocate(void** p, std::size_t n, Pool* pool, void* stream) {
  if (find_stream(stream) == nullptr) {
    return invalid_handle;
  }
  return pool == nullptr ? invalid_value : Books::get().allocate(p, n, Kind::pooled, pool->device, 0, pool);
}

}  // namespace

QLP_EXPORT int cudaMallocAsync(void** p, std::size_t n, void* stream) {
  return runtime(__func__, [&] { return allocate(p, n, current_pool(current_device()), stream); });
}

QLP_EXPORT int cudaMallocFromPoolAsync(void** p, std::size_t n, void* pool, void* stream) {
  return runtime(__func__, [&] { return allocate(p, n, static_cast<Pool*>(pool), stream); });
}

QLP_EXPORT int cudaFreeAsync(void* p, void* stream) {
  return runtime(__func__, [&] {
    return find_stream(stream) == nullptr ? static_cast<int>(invalid_handle)
                                          : Books::get().release(p, Kind::pooled, Kind::device);
  });
}

QLP_EXPORT int cudaDeviceGetDefaultMemPool(void** pool, int device) {
  return runtime(__func__, [&] {
    if (find_device(device) == nullptr) {
      return invalid_device;
    }
    *pool = default_pool(device);
    return ok;
  });
}

QLP_EXPORT int cudaDeviceGetMemPool(void** pool, int device) {
  return runtime(__func__, [&] {
    if (find_device(device) == nullptr) {
      return invalid_device;
    }
    *pool = current_pool(device);
    return ok;
  });
}

QLP_EXPORT int cudaDeviceSetMemPool(int device, void* pool) {
  return runtime(__func__, [&] {
    return find_device(device) == nullptr ? static_cast<int>(invalid_device)
                                          : set_current_pool(device, static_cast<Pool*>(pool));
  });
}

QLP_EXPORT int cudaMemPoolCreate(void** pool, const void* properties) {
  return runtime(__func__, [&] {
    const Location location = location_of(properties);
    if (location.type == 1 && find_device(location.id) == nullptr) {
      return invalid_device;
    }
    *pool = new_pool(location.type == 1 ? location.id : current_device());
    return ok;
  });
}

QLP_EXPORT int cudaMemPoolDestroy(void* pool) {
  return runtime(__func__, [&] {
    delete_pool(static_cast<Pool*>(pool));
    return ok;
  });
}

QLP_EXPORT int cudaMemPoolTrimTo(void* pool, std::size_t keep) {
  return runtime(__func__, [&] {
    trim_pool(*static_cast<Pool*>(pool), keep);
    return ok;
  });
}

QLP_EXPORT int cudaMemPoolGetAttribute(void* pool, int attribute, void* value) {
  return runtime(__func__, [&] { return pool_attribute(*static_cast<Pool*>(pool), attribute, value); });
}

QLP_EXPORT int cudaMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return runtime(__func__, [&] { return set_pool_attribute(*static_cast<Pool*>(pool), attribute, value); });
}

QLP_EXPORT int cudaMemPoolSetAccess(void*, const void*, std::size_t) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaMemPoolGetAccess(int* flags, void*, void*) {
  return runtime(__func__, [&] {
    *flags = 3;  // read and write
    return ok;
  });
}

// Graphs own no memory here.
QLP_EXPORT int cudaDeviceGetGraphMemAttribute(int, int, void* value) {
  return runtime(__func__, [&] {
    std::memset(value, 0, sizeof(std::uint64_t));
    return ok;
  });
}

QLP_EXPORT int cudaDeviceSetGraphMemAttribute(int, int, void*) {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaDeviceGraphMemTrim(int) {
  return runtime(__func__, [] { return ok; });
}
