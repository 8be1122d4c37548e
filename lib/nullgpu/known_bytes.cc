#include "nullgpu/known_bytes.h"

#include <algorithm>

#include "nullgpu/address_space.h"

namespace nullgpu {

void KnownBytes::add(std::uintptr_t begin, std::uintptr_t end) {
  if (begin >= end) {
    return;
  }
  auto at = intervals_.upper_bound(begin);
  if (at != intervals_.begin() && std::prev(at)->second >= begin) {
    --at;
    begin = at->first;
  }
  while (at != intervals_.end() && at->first <= end) {
    end = std::max(end, at->second);
    at = intervals_.erase(at);
  }
  intervals_.emplace(begin, end);
}

void KnownBytes::forget(std::uintptr_t begin, std::uintptr_t end) {
  auto at = intervals_.upper_bound(begin);
  if (at != intervals_.begin() && std::prev(at)->second > begin) {
    --at;
  }
  while (at != intervals_.end() && at->first < end) {
    const std::uintptr_t first = at->first;
    const std::uintptr_t last = at->second;
    at = intervals_.erase(at);
    if (first < begin) {
      intervals_.emplace(first, begin);
    }
    if (last > end) {
      intervals_.emplace(end, last);
    }
    const std::uintptr_t from = std::max(first, begin);
    drop_pages(from, std::min(last, end) - from);
  }
}

std::size_t KnownBytes::count(std::uintptr_t begin, std::uintptr_t end) const {
  std::size_t bytes = 0;
  for_each(begin, end, [&](std::uintptr_t from, std::uintptr_t to) { bytes += to - from; });
  return bytes;
}

}  // namespace nullgpu
