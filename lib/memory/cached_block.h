// The allocator's own view of a block, and the store from which blocks are made. Nothing outside memory/ needs this.
#pragma once

#include <cstdint>
#include <deque>

#include "memory/block.h"

namespace qlp {

struct Pool;

/// A block in the chain of its segment. In a free or unmapped block, `requested` and `tag` say nothing.
struct CachedBlock : Block {
  Pool* pool = nullptr;
  CachedBlock* prev = nullptr;       ///< the neighbour below in the segment
  CachedBlock* next = nullptr;       ///< the neighbour above
  std::uint64_t other_streams = 0;   ///< bit s: recorded on stream s, and not yet freed
  std::uint64_t cached_at = 0;       ///< the pool's count of searches when the block went into it
  std::uint64_t segment_base = 0;    ///< where the segment begins
  std::uint64_t rank_offset = 0;     ///< see rank()
  std::uint32_t pending_events = 0;  ///< events that keep the freed block from reuse
  bool allocated = false;
  bool mapped = true;
  bool expandable = false;
  bool live = false;  ///< made and not given back to the store

  bool is_split() const { return prev != nullptr || next != nullptr; }
  /// What decides between free blocks of equal size, the lower first: the address, or with a `rank_offset` that stands
  /// for the segment's age, first the age. Addresses are multiples of 512.
  std::uint64_t rank() const { return (address >> 9) + rank_offset; }
  /// Neither in use nor waiting for a stream.
  bool is_available() const { return !allocated && pending_events == 0 && other_streams == 0; }
};

/// Makes and takes back blocks; their addresses are stable.
class BlockStore {
 public:
  CachedBlock* make(Pool& pool, StreamId stream, std::uint64_t address, std::uint64_t size) {
    CachedBlock* block = spare_;
    if (block != nullptr) {
      spare_ = block->next;
    } else {
      block = &blocks_.emplace_back();
    }
    *block = CachedBlock{{.address = address, .size = size, .stream = stream}};
    block->pool = &pool;
    block->live = true;
    return block;
  }
  void give_back(CachedBlock* block) {
    block->live = false;
    block->next = spare_;
    spare_ = block;
  }
  /// Every block ever made; those that are not `live` say nothing.
  const std::deque<CachedBlock>& all() const { return blocks_; }

 private:
  std::deque<CachedBlock> blocks_;
  CachedBlock* spare_ = nullptr;
};

}  // namespace qlp
