#include "memory/host_memory.h"

#include <algorithm>
#include <bit>

namespace qlp {

std::pair<std::uint64_t, bool> PinnedBlocks::take(std::uint64_t bytes) {
  const std::uint64_t rounded = std::bit_ceil(bytes);
  const auto found = reuse_ == PinnedReuse::same_size ? free_.find(rounded) : free_.lower_bound(bytes);
  if (found == free_.end()) return {rounded, true};
  const std::uint64_t block = found->first;
  if (--found->second == 0) free_.erase(found);
  return {block, false};
}

void HostMemory::begin_phase(std::string_view name) {
  finish();
  phases_.push_back({.name = std::string(name), .peak = now_, .held = now_});
}

void HostMemory::finish() {
  if (!phases_.empty()) phases_.back().held = now_;
}

std::uint64_t HostMemory::take(HostKind kind, std::uint64_t bytes, Category category) {
  std::uint64_t taken = bytes;
  switch (kind) {
    case HostKind::pageable:
      now_.pageable += bytes;
      break;
    case HostKind::pinned: {
      const auto [block, is_new] = pinned_.take(bytes);
      if (is_new) now_.pinned += block;
      taken = block;
      break;
    }
    case HostKind::mapped:
      now_.mapped += bytes;
      break;
  }
  if (kind != HostKind::mapped) of(category) += bytes;
  if (phases_.empty()) return taken;
  HostFigures& peak = phases_.back().peak;
  const std::uint64_t mapped = std::max(peak.mapped, now_.mapped);
  if (now_.total() > peak.total()) peak = now_;
  peak.mapped = mapped;
  return taken;
}

void HostMemory::give_back(HostKind kind, std::uint64_t bytes, std::uint64_t taken, Category category) {
  switch (kind) {
    case HostKind::pageable:
      now_.pageable -= bytes;
      break;
    case HostKind::pinned:
      pinned_.give_back(taken);
      break;
    case HostKind::mapped:
      now_.mapped -= bytes;
      return;
  }
  of(category) -= bytes;
}

void HostMemory::relabel(HostKind kind, std::uint64_t bytes, Category from, Category to) {
  if (kind == HostKind::mapped) return;
  of(from) -= bytes, of(to) += bytes;
}

}  // namespace qlp
