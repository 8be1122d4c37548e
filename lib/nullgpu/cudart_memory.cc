// The CUDA runtime: memory.
#include <cstdint>
#include <cstring>
#include <unistd.h>

#include "nullgpu/books.h"
#include "nullgpu/copies.h"
#include "nullgpu/entry.h"
#include "nullgpu/graphs.h"
#include "nullgpu/ipc.h"
#include "nullgpu/modules.h"
#include "nullgpu/pools.h"
#include "nullgpu/streams.h"

using namespace nullgpu;

namespace {

int allocate(void** out, std::size_t bytes, Kind kind, unsigned flags = 0) {
  if (const int status = forbid_in_capture()) {
    return status;
  }
  return Books::get().allocate(out, bytes, kind, current_device(), flags);
}

// A copy that the host waits for.
int copy_now(void* to, const void* from, std::size_t n) {
  if (const int status = check_copy(to, from, n)) {
    return status;
  }
  copy(to, from, n);
  complete_work();
  return ok;
}

int copy_in_stream(void* to, const void* from, std::size_t n, void* stream) {
  if (const int status = check_copy(to, from, n)) {
    return status;
  }
  return submit(stream, NodeType::memcpy, [=] { copy(to, from, n); });
}

int copy_2d(const Pitched& p, void* stream, bool wait) {
  if (p.width > p.destination_pitch || p.width > p.source_pitch) {
    return invalid_pitch;
  }
  const int status = submit(stream, NodeType::memcpy, [=] { copy(p); });
  if (wait) {
    complete_work();
  }
  return status;
}

int fill_in_stream(void* p, int value, std::size_t n, void* stream) {
  if (const int status = check_range(p, n)) {
    return status;
  }
  const auto byte = static_cast<unsigned>(value) & 0xffU;
  return submit(stream, NodeType::memset, [=] { fill(p, byte, 1, n); });
}

}  // namespace

QLP_EXPORT int cudaMalloc(void** p, std::size_t n) {
  return runtime(__func__, [&] { return allocate(p, n, Kind::device); });
}

QLP_EXPORT int cudaMallocPitch(void** p, std::size_t* pitch, std::size_t width, std::size_t height) {
  return runtime(__func__, [&] {
    *pitch = (width + 511) / 512 * 512;
    return allocate(p, *pitch * height, Kind::device);
  });
}

QLP_EXPORT int cudaMallocManaged(void** p, std::size_t n, unsigned flags) {
  return runtime(__func__, [&] { return allocate(p, n, Kind::managed, flags); });
}

QLP_EXPORT int cudaHostAlloc(void** p, std::size_t n, unsigned flags) {
  return runtime(__func__, [&] { return allocate(p, n, Kind::pinned, flags); });
}

QLP_EXPORT int cudaMallocHost(void** p, std::size_t n) {
  return runtime(__func__, [&] { return allocate(p, n, Kind::pinned); });
}

QLP_EXPORT int cudaFree(void* p) {
  return runtime(__func__, [&] {
    complete_work();
    Block block{};
    const bool pooled = p != nullptr && Books::get().find(p, block) && block.kind == Kind::pooled;
    return Books::get().release(p, pooled ? Kind::pooled : Kind::device, Kind::managed);
  });
}

QLP_EXPORT int cudaFreeHost(void* p) {
  return runtime(__func__, [&] { return Books::get().release(p, Kind::pinned); });
}

QLP_EXPORT int cudaHostRegister(void* p, std::size_t n, unsigned flags) {
  return runtime(__func__, [&] { return Books::get().add_registered(p, n, flags, current_device()); });
}

QLP_EXPORT int cudaHostUnregister(void* p) {
  return runtime(__func__, [&] { return p == nullptr ? invalid_value : Books::get().release(p, Kind::registered); });
}

QLP_EXPORT int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return runtime(__func__, [&] {
    Block block{};
    if (!Books::get().find(host, block) || block.on_device()) {
      return static_cast<int>(invalid_value);
    }
    *device = host;
    return static_cast<int>(ok);
  });
}

QLP_EXPORT int cudaHostGetFlags(unsigned* flags, void* host) {
  return runtime(__func__, [&] {
    Block block{};
    if (!Books::get().find(host, block) || block.on_device()) {
      return static_cast<int>(invalid_value);
    }
    *flags = block.flags | 2U;  // cudaHostAllocMapped is always on with unified addresses
    return static_cast<int>(ok);
  });
}

QLP_EXPORT int cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  return runtime(__func__, [&] {
    *free_bytes = Books::get().free_bytes(current_device());
    *total = Books::get().capacity(current_device());
    return ok;
  });
}

// cudaPointerAttributes: type (0 unregistered, 1 host, 2 device, 3 managed), device, both pointers: 24 bytes in every
// version; what CUDA 13 reserves behind them is left alone.
QLP_EXPORT int cudaPointerGetAttributes(void* attributes, const void* p) {
  return runtime(__func__, [&] {
    struct {
      int type = 0;
      int device = -2;
      const void* on_device = nullptr;
      const void* on_host = nullptr;
    } answer;
    Block block{};
    if (Books::get().find(p, block)) {
      answer.device = block.device;
      answer.on_device = p;
      answer.type = block.on_device() ? 2 : block.kind == Kind::managed ? 3 : 1;
      answer.on_host = block.on_device() ? nullptr : p;
    }
    std::memcpy(attributes, &answer, sizeof answer);
    return ok;
  });
}

QLP_EXPORT int cudaMemcpy(void* to, const void* from, std::size_t n, int) {
  return runtime(__func__, [&] { return copy_now(to, from, n); });
}

QLP_EXPORT int cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t n) {
  return runtime(__func__, [&] { return copy_now(to, from, n); });
}

QLP_EXPORT int cudaMemcpyAsync(void* to, const void* from, std::size_t n, int, void* stream) {
  return runtime(__func__, [&] { return copy_in_stream(to, from, n, stream); });
}

QLP_EXPORT int cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t n, void* stream) {
  return runtime(__func__, [&] { return copy_in_stream(to, from, n, stream); });
}

QLP_EXPORT int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                            std::size_t height, int) {
  return runtime(__func__, [&] { return copy_2d({to, to_pitch, from, from_pitch, width, height}, nullptr, true); });
}

QLP_EXPORT int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                 std::size_t width, std::size_t height, int, void* stream) {
  return runtime(__func__, [&] { return copy_2d({to, to_pitch, from, from_pitch, width, height}, stream, false); });
}

QLP_EXPORT int cudaMemset(void* p, int value, std::size_t n) {
  return runtime(__func__, [&] { return fill_in_stream(p, value, n, nullptr); });
}

QLP_EXPORT int cudaMemsetAsync(void* p, int value, std::size_t n, void* stream) {
  return runtime(__func__, [&] { return fill_in_stream(p, value, n, stream); });
}

QLP_EXPORT int cudaMemset2DAsync(void* p, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                 void* stream) {
  return runtime(__func__, [&] {
    int status = ok;
    for (std::size_t y = 0; y < height && status == ok; ++y) {
      status = fill_in_stream(static_cast<char*>(p) + y * pitch, value, width, stream);
    }
    return status;
  });
}

QLP_EXPORT int cudaMemset2D(void* p, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return cudaMemset2DAsync(p, pitch, value, width, height, nullptr);
}

QLP_EXPORT int cudaGetSymbolAddress(void** p, const void* symbol) {
  return runtime(__func__, [&] {
    *p = variable_of(symbol, nullptr);
    return *p == nullptr ? invalid_symbol : ok;
  });
}

QLP_EXPORT int cudaGetSymbolSize(std::size_t* n, const void* symbol) {
  return runtime(__func__, [&] { return variable_of(symbol, n) == nullptr ? invalid_symbol : ok; });
}

QLP_EXPORT int cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t n, std::size_t offset, int,
                                       void* stream) {
  return runtime(__func__, [&] {
    auto* const p = static_cast<char*>(variable_of(symbol, nullptr));
    return p == nullptr ? static_cast<int>(invalid_symbol) : copy_in_stream(p + offset, from, n, stream);
  });
}

QLP_EXPORT int cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t n, std::size_t offset, int,
                                         void* stream) {
  return runtime(__func__, [&] {
    const auto* const p = static_cast<char*>(variable_of(symbol, nullptr));
    return p == nullptr ? static_cast<int>(invalid_symbol) : copy_in_stream(to, p + offset, n, stream);
  });
}

QLP_EXPORT int cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t n, std::size_t offset, int kind) {
  return cudaMemcpyToSymbolAsync(symbol, from, n, offset, kind, nullptr);
}

QLP_EXPORT int cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t n, std::size_t offset, int kind) {
  return cudaMemcpyFromSymbolAsync(to, symbol, n, offset, kind, nullptr);
}

// Where managed memory lies is not modelled: advice is taken and prefetches move nothing.
QLP_EXPORT int cudaMemAdvise() {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaMemAdvise_v2() {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaMemPrefetchAsync() {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaMemPrefetchAsync_v2() {
  return runtime(__func__, [] { return ok; });
}

QLP_EXPORT int cudaIpcGetMemHandle(void* handle, void* p) {
  return runtime(__func__, [&] { return export_block(handle, p); });
}

// The handle, 64 bytes, comes by value.
QLP_EXPORT int cudaIpcOpenMemHandle(void** p, IpcHandle handle, unsigned) {
  return runtime(__func__, [&] { return open_block(p, handle); });
}

QLP_EXPORT int cudaIpcCloseMemHandle(void* p) {
  return runtime(__func__, [&] { return Books::get().release(p, Kind::remote); });
}

QLP_EXPORT int cudaIpcGetEventHandle(void* handle, void* event) {
  return runtime(__func__, [&] { return export_event(handle, event); });
}

QLP_EXPORT int cudaIpcOpenEventHandle(void** event, IpcHandle handle) {
  return runtime(__func__, [&] { return open_event(event, handle); });
}
