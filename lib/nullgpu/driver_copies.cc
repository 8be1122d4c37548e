// The CUDA driver: copies and fills.
#include <cstdint>

#include "nullgpu/copies.h"
#include "nullgpu/entry.h"
#include "nullgpu/graphs.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

void* pointer(std::uintptr_t p) { return reinterpret_cast<void*>(p); }

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
