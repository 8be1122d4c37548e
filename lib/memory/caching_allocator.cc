#include "memory/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <stdexcept>
#include <utility>

#include "base/rounding.h"

namespace qlp {
namespace {

// c10/core/AllocatorConfig.h (torch 2.14), c10/cuda/CUDACachingAllocator.cpp (torch 2.8).
constexpr std::uint64_t kMinBlockSize = 512;
constexpr std::uint64_t kSmallSize = std::uint64_t{1} << 20;
constexpr std::uint64_t kSmallBuffer = std::uint64_t{2} << 20;
constexpr std::uint64_t kMinLargeAlloc = std::uint64_t{10} << 20;
constexpr std::uint64_t kRoundLarge = std::uint64_t{2} << 20;
/// Requests from an exabyte on are refused at sight (NativeCachingAllocator::allocate).
constexpr std::uint64_t kTooMuch = std::uint64_t{1} << 60;

/// Ages of segments are told apart in the bits of a rank above those of an offset in a segment, in units of 512 bytes.
constexpr unsigned kAgeShift = 40;

/// Up to the next of `divisions` equal steps between two powers of two (roundup_power2_next_division).
std::uint64_t round_up_to_division(std::uint64_t bytes, std::uint64_t divisions) {
  const std::uint64_t step = std::bit_floor(bytes) / divisions;
  return round_up(bytes, step);
}

constexpr std::uint64_t bit(StreamId stream) { return std::uint64_t{1} << stream; }

CachedBlock* own(Block* block) { return static_cast<CachedBlock*>(block); }

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorConfig& config, SegmentSource& source, EventPolicy policy)
    : config_(config),
      source_(&source),
      policy_(policy),
      allowed_(config.memory_fraction
                   ? static_cast<std::uint64_t>(*config.memory_fraction * static_cast<double>(source.capacity()))
                   : AllocatorConfig::kUnlimited),
      collects_garbage_(config.memory_fraction.has_value() && config.garbage_collection_threshold > 0),
      rounds_to_power2_(std::ranges::any_of(config.roundup_power2_divisions,
                                            [](std::uint32_t divisions) { return divisions > 1; })) {}

std::uint64_t CachingAllocator::rounded_to_power2(std::uint64_t bytes) const {
  if (bytes >= kMinBlockSize) {
    const std::uint64_t divisions = config_.power2_divisions_at(bytes);
    if (divisions > 1 && bytes > kMinBlockSize * divisions) return round_up_to_division(bytes, divisions);
  }
  return rounded_to_blocks(bytes);
}

std::uint64_t CachingAllocator::segment_size(std::uint64_t size) const {
  if (size <= kSmallSize) return kSmallBuffer;
  if (size < kMinLargeAlloc) return config_.large_segment_size;
  return round_up(size, kRoundLarge);
}

CachingAllocator::StreamState& CachingAllocator::new_stream(StreamId stream) {
  if (stream >= kMaxStreams) throw std::out_of_range("more streams than an allocator keeps apart");
  streams_[stream] = std::make_unique<StreamState>();
  streams_[stream]->small.small = true;
  return *streams_[stream];
}

bool CachingAllocator::should_split(const CachedBlock& block, std::uint64_t size) const {
  const std::uint64_t rest = block.size - size;
  if (block.pool->small || config_.expandable_segments) return rest >= kMinBlockSize;
  return rest > kSmallSize && size < config_.max_split_size;
}

Block* CachingAllocator::allocate(std::uint64_t bytes, StreamId stream) {
  assert(bytes > 0);
  if (bytes >= kTooMuch) [[unlikely]]
    throw OutOfMemory(bytes, source_->capacity(), stats_);
  process_events();
  const std::uint64_t size = rounded(bytes);
  StreamState& state = stream_state(stream);
  Pool& pool = size <= kSmallSize ? state.small : state.large;

  CachedBlock* block = take_free_block(pool, size);
  if (block == nullptr) [[unlikely]] {
    block = take_new_memory(pool, stream, size);
    if (block == nullptr) {
      ++stats_.num_ooms;
      tell(AllocatorEvent::Action::oom, stream, bytes, 0);
      throw OutOfMemory(bytes, std::min(allowed_, source_->capacity()), stats_);
    }
  }
  if (should_split(*block, size)) insert_free(split_off(block, size));

  block->allocated = true;
  block->requested = bytes;
  block->tag = 0;
  stats_.requested.increase(bytes);
  stats_.allocated.increase(block->size);
  stats_.active.increase(block->size);
  tell(AllocatorEvent::Action::alloc, stream, bytes, block->address);
  return block;
}

void CachingAllocator::free(Block* freed) {
  CachedBlock* block = own(freed);
  assert(block->allocated);
  block->allocated = false;
  stats_.allocated.decrease(block->size);
  tell(AllocatorEvent::Action::free_requested, block->stream, block->requested, block->address);
  if (block->other_streams == 0) [[likely]] {
    finish_free(block);
    return;
  }
  for (std::uint64_t left = block->other_streams; left != 0; left &= left - 1) {
    const auto stream = static_cast<StreamId>(std::countr_zero(left));
    StreamState& state = stream_state(stream);
    state.pending.push_back(block);
    ++block->pending_events;
    if (policy_ == EventPolicy::ready_at_once) {
      state.ready = state.pending.size();
      ready_streams_ |= bit(stream);
    }
  }
  block->other_streams = 0;
}

void CachingAllocator::record_stream(Block* block, StreamId stream) {
  if (stream == block->stream) return;
  stream_state(stream);
  own(block)->other_streams |= bit(stream);
}

void CachingAllocator::synchronize() {
  for (StreamId stream = 0; stream < streams_.size(); ++stream) {
    StreamState* state = streams_[stream].get();
    if (state == nullptr || state->pending.empty()) continue;
    state->ready = state->pending.size();
    ready_streams_ |= bit(stream);
  }
}

void CachingAllocator::complete_free(Block* freed) {
  CachedBlock* block = own(freed);
  assert(block->pending_events > 0);
  for (auto& state : streams_) {
    if (!state) continue;
    const auto entry = std::ranges::find(state->pending, block);
    if (entry == state->pending.end()) continue;
    if (entry < state->pending.begin() + static_cast<std::ptrdiff_t>(state->ready)) --state->ready;
    state->pending.erase(entry);
  }
  block->pending_events = 0;
  finish_free(block);
}

void CachingAllocator::complete_events() {
  while (ready_streams_ != 0) {
    StreamState& state = *streams_[static_cast<StreamId>(std::countr_zero(ready_streams_))];
    ready_streams_ &= ready_streams_ - 1;
    for (std::size_t i = 0; i < state.ready; ++i)
      if (--state.pending[i]->pending_events == 0) finish_free(state.pending[i]);
    state.pending.erase(state.pending.begin(), state.pending.begin() + static_cast<std::ptrdiff_t>(state.ready));
    state.ready = 0;
  }
}

void CachingAllocator::empty_cache() { release_cached(); }

CachedBlock* CachingAllocator::take_free_block(Pool& pool, std::uint64_t size) {
  if (collects_garbage_) ++searches_[pool.small];
  CachedBlock* block = pool.free.best_fit(size);
  if (block == nullptr) return nullptr;
  if (block->expandable) block = expandable_fit(pool, block);
  if (size < config_.max_split_size) {
    if (block->size >= config_.max_split_size) return nullptr;
  } else if (block->size >= size + config_.max_non_split_rounding) {
    return nullptr;
  }
  pool.free.erase(block);
  return block;
}

CachedBlock* CachingAllocator::take_new_memory(Pool& pool, StreamId stream, std::uint64_t size) {
  if (collects_garbage_) collect_garbage();
  CachedBlock* block = new_segment(pool, stream, size);
  if (block == nullptr && release_oversize(pool, size)) block = new_segment(pool, stream, size);
  if (block == nullptr) {
    release_cached();
    ++stats_.num_alloc_retries;
    block = new_segment(pool, stream, size);
  }
  return block;
}

CachedBlock* CachingAllocator::new_segment(Pool& pool, StreamId stream, std::uint64_t size) {
  const std::uint64_t bytes = segment_size(size);
  if (bytes > allowed_ || stats_.reserved.current > allowed_ - bytes) return nullptr;
  if (config_.expandable_segments) return grow_expandable(pool, stream, size);
  const auto address = source_->allocate(bytes);
  if (!address) return nullptr;
  stats_.reserved.increase(bytes);
  tell(AllocatorEvent::Action::segment_alloc, stream, bytes, *address);
  return whole_segment(pool, stream, *address, bytes);
}

CachedBlock* CachingAllocator::whole_segment(Pool& pool, StreamId stream, std::uint64_t address, std::uint64_t bytes) {
  CachedBlock* block = store_.make(pool, stream, address, bytes);
  block->segment_base = address;
  if (config_.equal_blocks == EqualBlocks::oldest_segment) {
    block->rank_offset = (++segments_made_ << kAgeShift) - (address >> 9);
  }
  return block;
}

void CachingAllocator::finish_free(CachedBlock* block) {
  tell(AllocatorEvent::Action::free_completed, block->stream, block->requested, block->address);
  stats_.active.decrease(block->size);
  stats_.requested.decrease(block->requested);
  merge(block, block->prev);
  merge(block, block->next);
  insert_free(block);
}

void CachingAllocator::insert_free(CachedBlock* block) {
  block->cached_at = searches_[block->pool->small];
  block->pool->free.insert(block);
}

void CachingAllocator::merge(CachedBlock* block, CachedBlock* neighbour) {
  if (neighbour == nullptr || !neighbour->is_available() || neighbour->mapped != block->mapped) return;
  if (neighbour->mapped) {
    block->pool->free.erase(neighbour);
  } else {
    std::erase(block->pool->unmapped, neighbour);
  }
  if (neighbour == block->prev) {
    block->address = neighbour->address;
    block->prev = neighbour->prev;
    if (block->prev != nullptr) block->prev->next = block;
  } else {
    block->next = neighbour->next;
    if (block->next != nullptr) block->next->prev = block;
  }
  block->size += neighbour->size;
  store_.give_back(neighbour);
}

CachedBlock* CachingAllocator::split_off(CachedBlock* block, std::uint64_t size) {
  CachedBlock* rest = store_.make(*block->pool, block->stream, block->address + size, block->size - size);
  rest->mapped = block->mapped;
  rest->expandable = block->expandable;
  rest->segment_base = block->segment_base;
  rest->rank_offset = block->rank_offset;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->prev = rest;
  block->next = rest;
  block->size = size;
  return rest;
}

std::vector<SegmentView> CachingAllocator::segments() const {
  std::vector<SegmentView> views;
  for (const CachedBlock& head : store_.all()) {
    if (!head.live || !head.mapped || (head.prev != nullptr && head.prev->mapped)) continue;
    SegmentView view{head.address, 0, head.stream, head.pool->small, head.expandable, {}};
    for (const CachedBlock* part = &head; part != nullptr && part->mapped; part = part->next) {
      view.size += part->size;
      const auto state = part->allocated            ? SegmentView::State::allocated
                         : part->pending_events > 0 ? SegmentView::State::pending_free
                                                    : SegmentView::State::free;
      view.parts.push_back({static_cast<const Block&>(*part), state});
    }
    views.push_back(std::move(view));
  }
  std::ranges::sort(views, {}, &SegmentView::address);
  return views;
}

}  // namespace qlp
