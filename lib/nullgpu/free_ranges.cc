#include "nullgpu/free_ranges.h"

namespace nullgpu {

void FreeRanges::insert(Range range) {
  auto after = ranges_.lower_bound(range.begin);
  if (after != ranges_.end() && after->first == range.end) {
    range.end = after->second;
    const auto joined = after++;
    erase(joined);
  }
  if (after != ranges_.begin() && std::prev(after)->second == range.begin) {
    range.begin = std::prev(after)->first;
    erase(std::prev(after));
  }
  add(range.begin, range.end);
}

std::uintptr_t FreeRanges::take(std::size_t bytes, std::size_t alignment) {
  for (auto fit = by_size_.lower_bound({bytes, 0}); fit != by_size_.end(); ++fit) {
    const auto range = ranges_.find(fit->second);
    const auto [begin, end] = *range;
    const std::uintptr_t address = (end - bytes) & ~(alignment - 1);
    if (address >= begin) {
      erase(range);
      add(begin, address);
      add(address + bytes, end);
      return address;
    }
  }
  return 0;
}

bool FreeRanges::remove(Range range) {
  auto at = ranges_.upper_bound(range.begin);
  if (at == ranges_.begin() || (--at)->second < range.end) {
    return false;
  }
  const auto [begin, end] = *at;
  erase(at);
  add(begin, range.begin);
  add(range.end, end);
  return true;
}

void FreeRanges::erase(std::map<std::uintptr_t, std::uintptr_t>::iterator range) {
  by_size_.erase({range->second - range->first, range->first});
  ranges_.erase(range);
}

void FreeRanges::add(std::uintptr_t begin, std::uintptr_t end) {
  if (begin < end) {
    ranges_.emplace(begin, end);
    by_size_.emplace(end - begin, begin);
  }
}

}  // namespace nullgpu
