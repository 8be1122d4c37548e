// The host memory of one process: what tensors take there, pageable or pinned, with the peaks of each phase.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/category.h"

namespace qlp {

enum class HostKind : std::uint8_t {
  pageable,  ///< malloc
  pinned,    ///< page-locked, from PyTorch's caching host allocator
  mapped,    ///< pages of a checkpoint file: shared by the node's processes, dropped when the system needs room
};

/// Which freed block PyTorch's caching host allocator takes again (ATen/core/CachingHostAllocator.h).
enum class PinnedReuse : std::uint8_t {
  same_size,     ///< one of the same power of two
  large_enough,  ///< the smallest that is large enough
};

/// What a process holds at one moment.
struct HostFigures {
  std::uint64_t total() const { return pageable + pinned; }

  std::uint64_t pageable = 0;                                     ///< bytes of tensors
  std::uint64_t pinned = 0;                                       ///< blocks, those that are free and kept included
  std::uint64_t mapped = 0;                                       ///< not part of the total
  std::array<std::uint64_t, kCategoryNames.size()> categories{};  ///< bytes of pageable and pinned tensors
};

struct HostPhase {
  std::string name;
  HostFigures peak;  ///< when the total was greatest; the most that was mapped, whenever that was
  HostFigures held;  ///< when the phase was over
};

/// Blocks of pinned memory: sizes are powers of two, and what is freed is kept for ever.
class PinnedBlocks {
 public:
  explicit PinnedBlocks(PinnedReuse reuse) : reuse_(reuse) {}

  /// The size of the block that serves `bytes`. It is new (true), or was free.
  std::pair<std::uint64_t, bool> take(std::uint64_t bytes);
  void give_back(std::uint64_t block) { ++free_[block]; }

 private:
  PinnedReuse reuse_;
  std::map<std::uint64_t, std::uint64_t> free_;  ///< how many by size
};

class HostMemory {
 public:
  explicit HostMemory(PinnedReuse reuse) : pinned_(reuse) {}

  /// Ends the phase before.
  void begin_phase(std::string_view name);
  /// Ends the last phase.
  void finish();

  /// Memory for a tensor; the answer names it when it is given back.
  std::uint64_t take(HostKind kind, std::uint64_t bytes, Category category);
  void give_back(HostKind kind, std::uint64_t bytes, std::uint64_t taken, Category category);
  void relabel(HostKind kind, std::uint64_t bytes, Category from, Category to);

  const HostFigures& now() const { return now_; }
  const std::vector<HostPhase>& phases() const { return phases_; }

 private:
  std::uint64_t& of(Category category) { return now_.categories[static_cast<std::size_t>(category)]; }

  PinnedBlocks pinned_;
  HostFigures now_;
  std::vector<HostPhase> phases_;
};

}  // namespace qlp
