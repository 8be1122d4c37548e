// Free ranges of addresses, joined where they touch; the smallest that is large enough is found in O(log n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace nullgpu {

struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
};

class FreeRanges {
 public:
  void insert(Range range);
  /// Takes `bytes` from the high end of the best fitting range, aligned to a power of two. 0: none is large enough.
  std::uintptr_t take(std::size_t bytes, std::size_t alignment);
  /// Whether all of it is free; then it is taken out.
  bool remove(Range range);

 private:
  void erase(std::map<std::uintptr_t, std::uintptr_t>::iterator range);
  void add(std::uintptr_t begin, std::uintptr_t end);

  std::map<std::uintptr_t, std::uintptr_t> ranges_;           // begin to end
  std::set<std::pair<std::size_t, std::uintptr_t>> by_size_;  // the same by (bytes, begin)
};

}  // namespace nullgpu
