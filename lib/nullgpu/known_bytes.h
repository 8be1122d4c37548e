// Which bytes of device memory hold what the host wrote. All others read as zero: that invariant is kept here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace nullgpu {

/// Disjoint intervals of addresses. Not synchronised.
class KnownBytes {
 public:
  /// The host wrote these.
  void add(std::uintptr_t begin, std::uintptr_t end);
  /// Something else owns these now: they read as zero.
  void forget(std::uintptr_t begin, std::uintptr_t end);
  std::size_t count(std::uintptr_t begin, std::uintptr_t end) const;

  /// Calls `visit(begin, end)` for each interval's part in [begin, end).
  template <class Visit>
  void for_each(std::uintptr_t begin, std::uintptr_t end, Visit&& visit) const {
    auto at = intervals_.upper_bound(begin);
    if (at != intervals_.begin() && std::prev(at)->second > begin) {
      --at;
    }
    for (; at != intervals_.end() && at->first < end; ++at) {
      visit(at->first < begin ? begin : at->first, at->second < end ? at->second : end);
    }
  }

 private:
  std::map<std::uintptr_t, std::uintptr_t> intervals_;
};

}  // namespace nullgpu
