#include "nullgpu/ipc.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "nullgpu/books.h"
#include "nullgpu/device.h"
#include "nullgpu/status.h"
#include "nullgpu/streams.h"

namespace nullgpu {
namespace {

constexpr std::uint64_t kBlock = 0x6b636f6c426c756eU;
constexpr std::uint64_t kEvent = 0x746e6576456c756eU;

void put(void* out, std::uint64_t kind, std::uint64_t a, std::uint64_t b) {
  const IpcHandle handle{{kind, static_cast<std::uint64_t>(getpid()), a, b, 0, 0, 0, 0}};
  std::memcpy(out, &handle, sizeof handle);
}

}  // namespace

int export_block(void* handle, void* p) {
  Block block{};
  if (handle == nullptr || !Books::get().find(p, block) || block.kind != Kind::device) {
    return invalid_value;
  }
  put(handle, kBlock, block.address, block.bytes);
  return ok;
}

int open_block(void** p, const IpcHandle& handle) {
  if (handle.words[0] != kBlock) {
    return invalid_value;
  }
  if (handle.words[1] == static_cast<std::uint64_t>(getpid())) {
    return invalid_context;  // a process cannot open its own
  }
  return Books::get().allocate(p, handle.words[3], Kind::remote, current_device(), 0);
}

int export_event(void* handle, void* event) {
  constexpr unsigned kInterprocess = 4;
  const Event* e = find_event(event);
  if (e == nullptr || (e->flags & kInterprocess) == 0) {
    return e == nullptr ? invalid_handle : invalid_value;
  }
  put(handle, kEvent, e->flags, 0);
  return ok;
}

int open_event(void** event, const IpcHandle& handle) {
  if (handle.words[0] != kEvent) {
    return invalid_value;
  }
  *event = new_event(static_cast<unsigned>(handle.words[2]));
  return ok;
}

int export_file(std::size_t bytes) {
  const int file = memfd_create("nullgpu", MFD_CLOEXEC);
  if (file >= 0 && pwrite(file, &bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    close(file);
    return -1;
  }
  return file;
}

std::size_t bytes_of_file(int file) {
  std::size_t bytes = 0;
  return pread(file, &bytes, sizeof bytes, 0) == static_cast<ssize_t>(sizeof bytes) ? bytes : 0;
}

}  // namespace nullgpu
