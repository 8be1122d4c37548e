// The CUDA driver: memory.
#include <cstdint>
#include <cstring>

#include "nullgpu/books.h"
#include "nullgpu/copies.h"
#include "nullgpu/entry.h"
#include "nullgpu/graphs.h"
#include "nullgpu/ipc.h"
#include "nullgpu/pools.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

void* pointer(std::uintptr_t p) { return reinterpret_cast<void*>(p); }

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

int copy_in(const char* name, void* to, const void* from, std::size_t n, void* stream, bool wait) {
  return driver(name, [&] {
    int status = check_copy(to, from, n);
    if (status == ok) {
      status = submit(stream, NodeType::memcpy, [=] { copy(to, from, n); });
    }
    if (wait) {
      complete_work();
    }
    return status;
  });
}

int fill_in(const char* name, std::uintptr_t p, unsigned value, std::size_t width, std::size_t n, void* stream) {
  return driver(name, [&] {
    const int status = check_range(pointer(p), n * width);
    return status != ok ? status : submit(stream, NodeType::memset, [=] { fill(pointer(p), value, width, n); });
  });
}

// CUDA_MEMCPY2D; memory types: 1 host, 2 device, 3 array, 4 unified.
struct Copy2d {
  std::size_t from_x, from_y;
  int from_type;
  const void* from_host;
  std::uintptr_t from_device;
  void* from_array;
  std::size_t from_pitch;
  std::size_t to_x, to_y;
  int to_type;
  void* to_host;
  std::uintptr_t to_device;
  void* to_array;
  std::size_t to_pitch;
  std::size_t width, height;
};

int copy_2d(const char* name, const Copy2d* c, void* stream, bool wait) {
  return driver(name, [&] {
    if (c->from_type == 3 || c->to_type == 3) {
      return static_cast<int>(not_supported);
    }
    Pitched p{};
    p.source = static_cast<const char*>(c->from_type == 1 ? c->from_host : pointer(c->from_device)) +
               c->from_y * c->from_pitch + c->from_x;
    p.destination =
        static_cast<char*>(c->to_type == 1 ? c->to_host : pointer(c->to_device)) + c->to_y * c->to_pitch + c->to_x;
    p.source_pitch = c->from_pitch;
    p.destination_pitch = c->to_pitch;
    p.width = c->width;
    p.height = c->height;
    const int status = submit(stream, NodeType::memcpy, [=] { copy(p); });
    if (wait) {
      complete_work();
    }
    return status;
  });
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
      *base = pointer(block.address);
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

QLP_EXPORT int cuMemcpy(void* to, const void* from, std::size_t n) {
  return copy_in(__func__, to, from, n, nullptr, true);
}
QLP_EXPORT int cuMemcpyAsync(void* to, const void* from, std::size_t n, void* stream) {
  return copy_in(__func__, to, from, n, stream, false);
}
QLP_EXPORT int cuMemcpyPeer(void* to, void*, const void* from, void*, std::size_t n) {
  return copy_in(__func__, to, from, n, nullptr, true);
}
QLP_EXPORT int cuMemcpyPeerAsync(void* to, void*, const void* from, void*, std::size_t n, void* stream) {
  return copy_in(__func__, to, from, n, stream, false);
}
QLP_EXPORT int cuMemcpyHtoD_v2(void* to, const void* from, std::size_t n) {
  return copy_in(__func__, to, from, n, nullptr, true);
}
QLP_EXPORT int cuMemcpyDtoH_v2(void* to, const void* from, std::size_t n) {
  return copy_in(__func__, to, from, n, nullptr, true);
}
QLP_EXPORT int cuMemcpyDtoD_v2(void* to, const void* from, std::size_t n) {
  return copy_in(__func__, to, from, n, nullptr, true);
}
QLP_EXPORT int cuMemcpyHtoDAsync_v2(void* to, const void* from, std::size_t n, void* stream) {
  return copy_in(__func__, to, from, n, stream, false);
}
QLP_EXPORT int cuMemcpyDtoHAsync_v2(void* to, const void* from, std::size_t n, void* stream) {
  return copy_in(__func__, to, from, n, stream, false);
}
QLP_EXPORT int cuMemcpyDtoDAsync_v2(void* to, const void* from, std::size_t n, void* stream) {
  return copy_in(__func__, to, from, n, stream, false);
}
QLP_EXPORT int cuMemcpy2D_v2(const Copy2d* c) { return copy_2d(__func__, c, nullptr, true); }
QLP_EXPORT int cuMemcpy2DUnaligned_v2(const Copy2d* c) { return copy_2d(__func__, c, nullptr, true); }
QLP_EXPORT int cuMemcpy2DAsync_v2(const Copy2d* c, void* stream) { return copy_2d(__func__, c, stream, false); }

QLP_EXPORT int cuMemsetD8_v2(std::uintptr_t p, unsigned char value, std::size_t n) {
  return fill_in(__func__, p, value, 1, n, nullptr);
}
QLP_EXPORT int cuMemsetD16_v2(std::uintptr_t p, unsigned short value, std::size_t n) {
  return fill_in(__func__, p, value, 2, n, nullptr);
}
QLP_EXPORT int cuMemsetD32_v2(std::uintptr_t p, unsigned value, std::size_t n) {
  return fill_in(__func__, p, value, 4, n, nullptr);
}
QLP_EXPORT int cuMemsetD8Async(std::uintptr_t p, unsigned char value, std::size_t n, void* stream) {
  return fill_in(__func__, p, value, 1, n, stream);
}
QLP_EXPORT int cuMemsetD16Async(std::uintptr_t p, unsigned short value, std::size_t n, void* stream) {
  return fill_in(__func__, p, value, 2, n, stream);
}
QLP_EXPORT int cuMemsetD32Async(std::uintptr_t p, unsigned value, std::size_t n, void* stream) {
  return fill_in(__func__, p, value, 4, n, stream);
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
