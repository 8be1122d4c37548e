// What copies and memsets do. Up to NULLGPU_COPY_MAX bytes they are really made, so that what the host wrote it can
// read back. Larger ones onto a device only leave zeros there; larger ones off it give zeros and what the host had
// written. Sources and destinations in host memory are never touched beyond what is copied.
#pragma once

#include <cstddef>

namespace nullgpu {

/// Status: invalid_value where a range leaves its block, or was freed.
int check_copy(const void* destination, const void* source, std::size_t n);
int check_range(const void* p, std::size_t n);

void copy(void* destination, const void* source, std::size_t n);
/// Host bytes onto the device, however many.
void put(void* destination, const void* source, std::size_t n);
void fill(void* p, unsigned value, std::size_t width, std::size_t count);

struct Pitched {
  void* destination;
  std::size_t destination_pitch;
  const void* source;
  std::size_t source_pitch;
  std::size_t width;
  std::size_t height;
  std::size_t depth = 1;
  std::size_t destination_slice = 0;
  std::size_t source_slice = 0;
};
void copy(const Pitched& p);

}  // namespace nullgpu
