// Free ranges of addresses, joined where they touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

namespace nullgpu {

struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
};

class FreeRanges {
 public:
  void insert(Range range);
  /// Takes `bytes` and `distance` behind them from the end of the highest range that holds both; where the bytes begin.
  /// 0: there is none. O(log n) for each size that there is.
  std::uintptr_t take(std::size_t bytes, std::size_t distance);
  /// Whether all of it is free; then it is taken out.
  bool remove(Range range);

 private:
  void erase(std::map<std::uintptr_t, std::uintptr_t>::iterator range);
  void add(std::uintptr_t begin, std::uintptr_t end);

  std::map<std::uintptr_t, std::uintptr_t> ranges_;          // begin to end
  std::map<std::size_t, std::set<std::uintptr_t>> by_size_;  // begins of those of one size
};

}  // namespace nullgpu
