// What one process hands to another: descriptions of blocks and events, not the memory itself. A block that is opened
// holds zeros and does not count, as it belongs to the process that made it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nullgpu {

struct IpcHandle {
  std::uint64_t words[8];
};

/// Statuses. `handle` points to 64 bytes.
int export_block(void* handle, void* p);
int open_block(void** p, const IpcHandle& handle);
int export_event(void* handle, void* event);
int open_event(void** event, const IpcHandle& handle);

/// A file that describes a piece of memory (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), and back; -1 and 0: it failed.
int export_file(std::size_t bytes);
std::size_t bytes_of_file(int file);

}  // namespace nullgpu
