// PyTorch's CUDA caching allocator, block by block (c10/cuda/CUDACachingAllocator.cpp, torch 2.8 and 2.14).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "memory/allocator_config.h"
#include "memory/allocator_event.h"
#include "memory/block.h"
#include "memory/cached_block.h"
#include "memory/free_blocks.h"
#include "memory/memory_stats.h"
#include "memory/out_of_memory.h"
#include "memory/segment_source.h"
#include "memory/segment_view.h"

namespace qlp {

/// When the events that free() records on the streams of a block are found complete.
enum class EventPolicy : std::uint8_t {
  ready_at_once,   ///< at the next allocation: a GPU that never lags
  at_synchronize,  ///< at the first allocation after synchronize(): a GPU that lags as far as it can
};

/// The blocks of one stream for small (rounded size up to 1 MiB) or for large requests.
struct Pool {
  bool small = false;
  FreeBlocks free;
  std::vector<CachedBlock*> unmapped;  ///< parts of expandable segments without memory, by address
};

class CachingAllocator {
 public:
  /// The source must outlive the allocator, which gives nothing back to it when it goes.
  explicit CachingAllocator(const AllocatorConfig& config, SegmentSource& source,
                            EventPolicy policy = EventPolicy::ready_at_once);
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;
  ~CachingAllocator() = default;

  /// A block of at least `bytes` for use on `stream`. `bytes` > 0: torch has no block for an empty tensor.
  /// Throws OutOfMemory, after which the allocator can go on.
  Block* allocate(std::uint64_t bytes, StreamId stream);
  /// The tensor is gone. The block can be reused at once, or when the streams recorded on it have come past this point.
  void free(Block* block);
  /// The block is also used on `stream`.
  void record_stream(Block* block, StreamId stream);
  /// Everything queued so far has run (cudaDeviceSynchronize): with at_synchronize the recorded events are complete.
  void synchronize();
  /// The events of one freed block are complete now: for replaying a recorded history, which says when that was.
  void complete_free(Block* block);
  /// torch.cuda.empty_cache(): waits for all events and gives back what is not used.
  void empty_cache();

  const MemoryStats& stats() const { return stats_; }
  void reset_peaks() { stats_.reset_peaks(); }
  const AllocatorConfig& config() const { return config_; }
  /// By address.
  std::vector<SegmentView> segments() const;
  /// Told of every event from now on; null for nobody. Not owned.
  void set_observer(AllocatorObserver* observer) { observer_ = observer; }

 private:
  struct StreamState {
    Pool small, large;
    std::vector<CachedBlock*> pending;  ///< freed blocks, one entry for each event recorded on this stream, in order
    std::size_t ready = 0;              ///< how many of them, from the first, are complete
  };

  std::uint64_t rounded(std::uint64_t bytes) const {
    return rounds_to_power2_ ? rounded_to_power2(bytes) : rounded_to_blocks(bytes);
  }
  /// To the next multiple of kMinBlockSize.
  static constexpr std::uint64_t rounded_to_blocks(std::uint64_t bytes) { return (bytes + 511) / 512 * 512; }
  std::uint64_t rounded_to_power2(std::uint64_t bytes) const;
  std::uint64_t segment_size(std::uint64_t size) const;
  std::uint64_t page_size(const Pool& pool) const;
  StreamState& stream_state(StreamId stream) {
    if (stream < kMaxStreams && streams_[stream]) [[likely]]
      return *streams_[stream];
    return new_stream(stream);
  }
  StreamState& new_stream(StreamId stream);
  bool should_split(const CachedBlock& block, std::uint64_t size) const;

  void process_events() {
    if (ready_streams_ != 0) [[unlikely]]
      complete_events();
  }
  void complete_events();
  CachedBlock* take_free_block(Pool& pool, std::uint64_t size);
  CachedBlock* expandable_fit(Pool& pool, CachedBlock* candidate) const;
  CachedBlock* take_new_memory(Pool& pool, StreamId stream, std::uint64_t size);
  CachedBlock* whole_segment(Pool& pool, StreamId stream, std::uint64_t address, std::uint64_t bytes);
  CachedBlock* new_segment(Pool& pool, StreamId stream, std::uint64_t size);
  void finish_free(CachedBlock* block);
  void insert_free(CachedBlock* block);
  void merge(CachedBlock* block, CachedBlock* neighbour);

  CachedBlock* grow_expandable(Pool& pool, StreamId stream, std::uint64_t size);
  CachedBlock* find_address_space(Pool& pool, StreamId stream, std::uint64_t size);
  bool map(CachedBlock* block, std::uint64_t size);
  void unmap(CachedBlock* block);
  CachedBlock* split_off(CachedBlock* block, std::uint64_t size);

  void collect_garbage();
  bool release_oversize(Pool& pool, std::uint64_t size);
  void release_cached();
  void release_pool(Pool& pool);
  void release_segment(CachedBlock* block);

  void tell(AllocatorEvent::Action action, StreamId stream, std::uint64_t bytes, std::uint64_t address) {
    if (observer_ != nullptr) [[unlikely]]
      observer_->on({action, stream, bytes, address});
  }

  AllocatorConfig config_;
  SegmentSource* source_;
  EventPolicy policy_;
  AllocatorObserver* observer_ = nullptr;
  std::uint64_t allowed_;  ///< most that may be reserved, where a memory fraction is set
  bool collects_garbage_;
  bool rounds_to_power2_;
  MemoryStats stats_;
  std::uint64_t ready_streams_ = 0;          ///< bit s: stream s has complete events
  std::array<std::uint64_t, 2> searches_{};  ///< of the large and the small pools, counted while garbage is collected
  std::uint64_t segments_made_ = 0;
  BlockStore store_;
  std::array<std::unique_ptr<StreamState>, kMaxStreams> streams_;
};

}  // namespace qlp
