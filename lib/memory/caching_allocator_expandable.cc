// Expandable segments: one growing address space per stream and pool, in which pages are mapped as they are needed.
#include <algorithm>
#include <cassert>

#include "base/rounding.h"
#include "memory/caching_allocator.h"

namespace qlp {
namespace {

void insert_by_address(std::vector<CachedBlock*>& blocks, CachedBlock* block) {
  blocks.insert(std::ranges::lower_bound(blocks, block->address, {}, &CachedBlock::address), block);
}

/// What a free block can grow to inside its segment.
std::uint64_t expandable_size(const CachedBlock* block) {
  return block->size + (block->next != nullptr && !block->next->mapped ? block->next->size : 0);
}

}  // namespace

std::uint64_t CachingAllocator::page_size(const Pool& pool) const {
  return pool.small ? std::uint64_t{2} << 20 : config_.large_segment_size;
}

/// The free end of a growing segment is, to best fit, as large as it can grow: prefer the next larger free blocks.
CachedBlock* CachingAllocator::expandable_fit(Pool& pool, CachedBlock* candidate) const {
  while (const CachedBlock* next = pool.free.after(candidate)) {
    if (expandable_size(next) >= expandable_size(candidate)) break;
    candidate = pool.free.after(candidate);
  }
  return candidate;
}

CachedBlock* CachingAllocator::grow_expandable(Pool& pool, StreamId stream, std::uint64_t size) {
  CachedBlock* block = find_address_space(pool, stream, size);
  if (!block->mapped && !map(block, std::min(block->size, size))) return nullptr;
  while (block->size < size) {
    CachedBlock* following = block->next;
    if (!map(following, std::min(size - block->size, following->size))) return nullptr;
    block = following;
  }
  pool.free.erase(block);
  return block;
}

/// The lowest free or unmapped block from which `size` bytes can be made; in a new address space if there is none.
CachedBlock* CachingAllocator::find_address_space(Pool& pool, StreamId stream, std::uint64_t size) {
  const auto has_room = [&](const CachedBlock* block) {
    std::uint64_t bytes = 0;
    for (; bytes < size && block != nullptr && block->is_available(); block = block->next) bytes += block->size;
    return bytes >= size;
  };
  for (CachedBlock* unmapped : pool.unmapped) {
    CachedBlock* first = unmapped->prev != nullptr && unmapped->prev->is_available() ? unmapped->prev : unmapped;
    if (has_room(first)) return first;
  }
  // An eighth more than the device has, for pages that move to the end (find_expandable_block).
  const std::uint64_t page = page_size(pool);
  const std::uint64_t wanted = source_->capacity() + source_->capacity() / 8;
  const std::uint64_t bytes = round_up(std::max(wanted, size), page);
  CachedBlock* block = whole_segment(pool, stream, source_->reserve(bytes), bytes);
  block->mapped = false;
  block->expandable = true;
  insert_by_address(pool.unmapped, block);
  return block;
}

bool CachingAllocator::map(CachedBlock* block, std::uint64_t size) {
  Pool& pool = *block->pool;
  const std::uint64_t page = page_size(pool);
  const std::uint64_t bytes = round_up(size, page);
  if (!source_->map(block->address, bytes)) return false;
  const std::uint64_t address = block->address;

  std::erase(pool.unmapped, block);
  if (bytes < block->size) insert_by_address(pool.unmapped, split_off(block, bytes));
  block->mapped = true;
  merge(block, block->prev);
  merge(block, block->next);
  insert_free(block);
  stats_.reserved.increase(bytes);
  tell(AllocatorEvent::Action::segment_map, block->stream, bytes, address);
  return true;
}

/// Takes the whole pages out of a free block, and ends the address space when nothing else is left in it.
void CachingAllocator::unmap(CachedBlock* block) {
  Pool& pool = *block->pool;
  const std::uint64_t page = page_size(pool);
  const std::uint64_t base = block->segment_base;
  const std::uint64_t begin = base + round_up(block->address - base, page);
  const std::uint64_t end = base + (block->address + block->size - base) / page * page;
  if (begin >= end) return;
  pool.free.erase(block);
  if (block->address < begin) {
    CachedBlock* rest = split_off(block, begin - block->address);
    insert_free(block);
    block = rest;
  }
  if (block->address + block->size > end) insert_free(split_off(block, end - block->address));

  source_->unmap(begin, end - begin);
  block->mapped = false;
  merge(block, block->prev);
  merge(block, block->next);
  insert_by_address(pool.unmapped, block);
  stats_.reserved.decrease(end - begin);
  tell(AllocatorEvent::Action::segment_unmap, block->stream, end - begin, begin);

  if (!block->is_split()) {
    std::erase(pool.unmapped, block);
    source_->unreserve(block->address, block->size);
    store_.give_back(block);
  }
}

}  // namespace qlp
