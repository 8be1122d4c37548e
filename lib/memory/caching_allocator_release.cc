// How a CachingAllocator gives memory back: when asked to, when it is out of memory, and as garbage collection.
#include <algorithm>

#include "memory/caching_allocator.h"

namespace qlp {

void CachingAllocator::release_cached() {
  synchronize();
  process_events();
  for (const bool small : {false, true})
    for (auto& state : streams_)
      if (state) release_pool(small ? state->small : state->large);
}

void CachingAllocator::release_pool(Pool& pool) {
  std::vector<CachedBlock*> expandable;
  for (CachedBlock* block : pool.free.in_order()) {
    if (block->expandable) {
      expandable.push_back(block);
    } else if (!block->is_split()) {
      release_segment(block);
    }
  }
  for (CachedBlock* block : expandable) unmap(block);
}

void CachingAllocator::release_segment(CachedBlock* block) {
  tell(AllocatorEvent::Action::segment_free, block->stream, block->size, block->address);
  block->pool->free.erase(block);
  source_->release(block->address, block->size);
  stats_.reserved.decrease(block->size);
  store_.give_back(block);
}

bool CachingAllocator::release_oversize(Pool& pool, std::uint64_t size) {
  if (config_.max_split_size == AllocatorConfig::kUnlimited) return false;
  const std::uint64_t wanted = std::max(size, config_.max_split_size);
  if (CachedBlock* block = pool.free.best_fit(wanted)) {
    if (block->expandable) return false;
    release_segment(block);
    return true;
  }
  // No block alone is enough: the largest ones, as many as it takes.
  std::uint64_t released = 0;
  while (released < wanted) {
    CachedBlock* block = pool.free.largest();
    if (block == nullptr || block->expandable || block->size < config_.max_split_size) break;
    released += block->size;
    release_segment(block);
  }
  return released >= wanted;
}

void CachingAllocator::collect_garbage() {
  const auto threshold =
      static_cast<std::uint64_t>(config_.garbage_collection_threshold * static_cast<double>(allowed_));
  if (stats_.reserved.current <= threshold) return;
  const std::uint64_t target = stats_.reserved.current - threshold;

  std::vector<CachedBlock*> candidates;
  std::uint64_t total_age = 0;
  const auto age = [&](const CachedBlock* block) { return searches_[0] - block->cached_at; };
  for (auto& state : streams_) {
    if (!state) continue;
    for (CachedBlock* block : state->large.free.in_order()) {
      if (block->is_split() || block->expandable) continue;
      candidates.push_back(block);
      total_age += age(block);
    }
  }
  // Rounds of freeing everything older than the average, until enough is free or a round frees nothing.
  std::uint64_t reclaimed = 0;
  bool freed = true;
  while (reclaimed < target && freed && !candidates.empty()) {
    const double average = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    freed = std::erase_if(candidates, [&](CachedBlock* block) {
              if (static_cast<double>(age(block)) < average) return false;
              reclaimed += block->size;
              total_age -= age(block);
              release_segment(block);
              return true;
            }) > 0;
  }
}

}  // namespace qlp
