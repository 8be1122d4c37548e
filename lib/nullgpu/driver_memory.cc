// The CUDA driver: memory, pools, addresses.
#include <cstdint>
#include <cstring>

#include "nullgpu/books.h"
#include "nullgpu/entry.h"
#include "nullgpu/graphs.h"
#include "nullgpu/ipc.h"
#include "nullgpu/pools.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

int allocate(void** out, std::size_t bytes, Kind kind, unsigned flags = 0) {
  if (current_context() == nullptr) {
    return invalid_context;
  }
  if (bytes == 0) {
    return invalid_value;  // where the runtime gives null
  }
  if (const int status = forbid_in_capture()) {
    return status;
  }
  return Books::get().allocate(out, bytes, kind, current_device(), flags);
}

}  // namespace

QLP_EXPORT int cuMemAlloc_v2(void** p, std::size_t n) {
  return driver(__func__, [&] { return allocate(p, n, Kind::device); });
}

QLP_EXPORT int cuMemAllocPitch_v2(void** p, std::size_t* pitch, std::size_t width, std::size_t height, unsigned) {
  return driver(__func__, [&] {
    *pitch = (width + 511) / 512 * 512;
    return allocate(p, *pitch * height, Kind::device);
  });
}

QLP_EXPORT int cuMemAllocManaged(void** p, std::size_t n, unsigned flags) {
  return driver(__func__, [&] { return allocate(p, n, Kind::managed, flags); });
}

QLP_EXPORT int cuMemAllocHost_v2(void** p, std::size_t n) {
  return driver(__func__, [&] { return allocate(p, n, Kind::pinned); });
}

QLP_EXPORT int cuMemHostAlloc(void** p, std::size_t n, unsigned flags) {
  return driver(__func__, [&] { return allocate(p, n, Kind::pinned, flags); });
}

QLP_EXPORT int cuMemFree_v2(void* p) {
  return driver(__func__, [&] {
    complete_work();
    return Books::get().release(p, Kind::device, Kind::managed);
  });
}

QLP_EXPORT int cuMemFreeHost(void* p) {
  return driver(__func__, [&] { return Books::get().release(p, Kind::pinned); });
}

QLP_EXPORT int cuMemHostRegister_v2(void* p, std::size_t n, unsigned flags) {
  return driver(__func__, [&] { return Books::get().add_registered(p, n, flags, current_device()); });
}

QLP_EXPORT int cuMemHostUnregister(void* p) {
  return driver(__func__, [&] { return Books::get().release(p, Kind::registered); });
}

QLP_EXPORT int cuMemHostGetDevicePointer_v2(void** device, void* host, unsigned) {
  return driver(__func__, [&] {
    Block block{};
    if (!Books::get().find(host, block) || block.on_device()) {
      return invalid_value;
    }
    *device = host;
    return ok;
  });
}

QLP_EXPORT int cuMemHostGetFlags(unsigned* flags, void* host) {
  return driver(__func__, [&] {
    Block block{};
    if (!Books::get().find(host, block) || block.on_device()) {
      return invalid_value;
    }
    *flags = block.flags | 2U;
    return ok;
  });
}

QLP_EXPORT int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  return driver(__func__, [&] {
    *free_bytes = Books::get().free_bytes(current_device());
    *total = Books::get().capacity(current_device());
    return current_context() == nullptr ? invalid_context : ok;
  });
}

QLP_EXPORT int cuMemGetAddressRange_v2(void** base, std::size_t* bytes, void* p) {
  return driver(__func__, [&] {
    Block block{};
    if (!Books::get().find(p, block)) {
      return not_found;
    }
    if (base != nullptr) {
      *base = reinterpret_cast<void*>(block.address);
    }
    if (bytes != nullptr) {
      *bytes = block.bytes;
    }
    return ok;
  });
}

namespace {

int pointer_attribute(void* out, int attribute, void* p) {
  Block block{};
  if (!Books::get().find(p, block)) {
    return invalid_value;
  }
  const auto put = [&](auto value) {
    std::memcpy(out, &value, sizeof value);
    return ok;
  };
  switch (attribute) {
    case 1:
      return put(static_cast<void*>(primary_context(block.device)));
    case 2:  // CU_MEMORYTYPE_HOST, _DEVICE
      return put(static_cast<unsigned>(block.on_device() || block.kind == Kind::managed ? 2 : 1));
    case 3:
      return put(p);
    case 4:
      return block.on_device() ? invalid_value : put(p);
    case 6:
    case 10:
    case 15:
      return put(0U);
    case 7:
      return put(block.id);
    case 8:
      return put(static_cast<unsigned>(block.kind == Kind::managed));
    case 9:
      return put(block.device);
    case 11:
    case 19:
      return put(block.address);
    case 12:
    case 18:
      return put(block.bytes);
    case 13:
      return put(1U);
    case 14:
      return put(std::uint64_t{0});
    case 16:
      return put(3U);  // read and write
    case 17:
      return put(static_cast<void*>(block.pool));
    default:
      return invalid_value;
  }
}

}  // namespace

QLP_EXPORT int cuPointerGetAttribute(void* out, int attribute, void* p) {
  return driver(__func__, [&] { return pointer_attribute(out, attribute, p); });
}

// What is not known about an address is answered as zero, and the call succeeds.
QLP_EXPORT int cuPointerGetAttributes(unsigned count, const int* attributes, void** out, void* p) {
  return driver(__func__, [&] {
    for (unsigned i = 0; i < count; ++i) {
      if (pointer_attribute(out[i], attributes[i], p) != ok) {
        std::memset(out[i], 0, attributes[i] == 9 || attributes[i] == 2 ? 4 : 8);
      }
    }
    return ok;
  });
}

QLP_EXPORT int cuPointerSetAttribute(const void*, int, void*) {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuMemAdvise() {
  return driver(__func__, [] { return ok; });
}
QLP_EXPORT int cuMemAdvise_v2() {
  return driver(__func__, [] { return ok; });
}
QLP_EXPORT int cuMemPrefetchAsync() {
  return driver(__func__, [] { return ok; });
}
QLP_EXPORT int cuMemPrefetchAsync_v2() {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuMemAllocAsync(void** p, std::size_t n, void* stream) {
  return driver(__func__, [&] {
    Pool* pool = current_pool(current_device());
    return find_stream(stream) == nullptr ? static_cast<int>(invalid_handle)
                                          : Books::get().allocate(p, n, Kind::pooled, pool->device, 0, pool);
  });
}

QLP_EXPORT int cuMemAllocFromPoolAsync(void** p, std::size_t n, void* pool, void* stream) {
  return driver(__func__, [&] {
    auto* from = static_cast<Pool*>(pool);
    return find_stream(stream) == nullptr ? static_cast<int>(invalid_handle)
                                          : Books::get().allocate(p, n, Kind::pooled, from->device, 0, from);
  });
}

QLP_EXPORT int cuMemFreeAsync(void* p, void* stream) {
  return driver(__func__, [&] {
    return find_stream(stream) == nullptr ? static_cast<int>(invalid_handle)
                                          : Books::get().release(p, Kind::pooled, Kind::device);
  });
}

QLP_EXPORT int cuDeviceGetDefaultMemPool(void** pool, int device) {
  return driver(__func__, [&] {
    *pool = find_device(device) == nullptr ? nullptr : default_pool(device);
    return *pool == nullptr ? invalid_device : ok;
  });
}

QLP_EXPORT int cuDeviceGetMemPool(void** pool, int device) {
  return driver(__func__, [&] {
    *pool = find_device(device) == nullptr ? nullptr : current_pool(device);
    return *pool == nullptr ? invalid_device : ok;
  });
}

QLP_EXPORT int cuDeviceSetMemPool(int device, void* pool) {
  return driver(__func__, [&] { return set_current_pool(device, static_cast<Pool*>(pool)); });
}

QLP_EXPORT int cuMemPoolCreate(void** pool, const void*) {
  return driver(__func__, [&] {
    *pool = new_pool(current_device());
    return ok;
  });
}

QLP_EXPORT int cuMemPoolDestroy(void* pool) {
  return driver(__func__, [&] {
    delete_pool(static_cast<Pool*>(pool));
    return ok;
  });
}

QLP_EXPORT int cuMemPoolTrimTo(void* pool, std::size_t keep) {
  return driver(__func__, [&] {
    trim_pool(*static_cast<Pool*>(pool), keep);
    return ok;
  });
}

QLP_EXPORT int cuMemPoolGetAttribute(void* pool, int attribute, void* value) {
  return driver(__func__, [&] { return pool_attribute(*static_cast<Pool*>(pool), attribute, value); });
}

QLP_EXPORT int cuMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return driver(__func__, [&] { return set_pool_attribute(*static_cast<Pool*>(pool), attribute, value); });
}

QLP_EXPORT int cuMemPoolSetAccess(void*, const void*, std::size_t) {
  return driver(__func__, [] { return ok; });
}

QLP_EXPORT int cuIpcGetMemHandle(void* handle, void* p) {
  return driver(__func__, [&] { return export_block(handle, p); });
}

QLP_EXPORT int cuIpcOpenMemHandle_v2(void** p, IpcHandle handle, unsigned) {
  return driver(__func__, [&] { return open_block(p, handle); });
}

QLP_EXPORT int cuIpcCloseMemHandle(void* p) {
  return driver(__func__, [&] { return Books::get().release(p, Kind::remote); });
}
