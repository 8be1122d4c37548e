#include "nullgpu/free_ranges.h"

#include <algorithm>

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

std::uintptr_t FreeRanges::take(std::size_t bytes, std::size_t distance) {
  std::uintptr_t highest = 0;
  for (auto size = by_size_.lower_bound(bytes + distance); size != by_size_.end(); ++size) {
    highest = std::max(highest, *size->second.rbegin());
  }
  if (highest == 0) {
    return 0;
  }
  const auto range = ranges_.find(highest);
  const std::uintptr_t address = range->second - distance - bytes;
  erase(range);
  add(highest, address);
  return address;
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
  const auto size = by_size_.find(range->second - range->first);
  size->second.erase(range->first);
  if (size->second.empty()) {
    by_size_.erase(size);
  }
  ranges_.erase(range);
}

void FreeRanges::add(std::uintptr_t begin, std::uintptr_t end) {
  if (begin < end) {
    ranges_.emplace(begin, end);
    by_size_[end - begin].insert(begin);
  }
}

}  // namespace nullgpu
