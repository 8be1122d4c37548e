#include "memory/free_blocks.h"

#include <algorithm>
#include <cassert>

namespace qlp {

void FreeBlocks::insert_inside(Entries& entries, CachedBlock* block) {
  const auto place = std::partition_point(entries.begin(), entries.end(),
                                          [&](const Entry& e) { return above(e, block->size, block->rank()); });
  entries.emplace(place, block->size, block->rank(), block);
}

void FreeBlocks::erase_inside(Entries& entries, const CachedBlock* block) {
  const auto place = std::partition_point(entries.begin(), entries.end(),
                                          [&](const Entry& e) { return above(e, block->size, block->rank()); });
  assert(place != entries.end() && place->block == block);
  entries.erase(place);
}

CachedBlock* FreeBlocks::find_inside(const Entries& entries, std::uint64_t size, std::uint64_t rank) {
  const auto end = std::partition_point(entries.begin(), entries.end(), [&](const Entry& e) {
    return e.size > size || (e.size == size && e.rank >= rank);
  });
  return end == entries.begin() ? nullptr : (end - 1)->block;
}

CachedBlock* FreeBlocks::largest() const {
  for (std::size_t bin = kBins; bin-- > 0;)
    if (!bins_[bin].empty()) return bins_[bin].front().block;
  return nullptr;
}

std::vector<CachedBlock*> FreeBlocks::in_order() const {
  std::vector<CachedBlock*> blocks;
  for (const auto& entries : bins_)
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) blocks.push_back(entry->block);
  return blocks;
}

}  // namespace qlp
