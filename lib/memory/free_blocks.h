// The free blocks of one pool, ordered by size and then by rank: torch's std::set, made quick.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "memory/cached_block.h"

namespace qlp {

/// Blocks lie in bins of similar size (eight to a power of two); a bin is sorted, the smallest block last, so that the
/// usual answer is at its end.
class FreeBlocks {
 public:
  /// `block` must not change its size or rank while it is in.
  void insert(CachedBlock* block) {
    const std::uint64_t size = block->size;
    const std::uint64_t rank = block->rank();
    const std::size_t bin = bin_of(size);
    Entries& entries = bins_[bin];
    if (entries.empty()) {
      mark(bin);
    } else if (!above(entries.back(), size, rank)) {
      insert_inside(entries, block);
      return;
    }
    entries.emplace_back(size, rank, block);
  }
  /// `block` must be in.
  void erase(const CachedBlock* block) {
    const std::size_t bin = bin_of(block->size);
    auto& entries = bins_[bin];
    if (entries.back().block == block) {
      entries.pop_back();
      if (entries.empty()) clear(bin);
    } else {
      erase_inside(entries, block);
    }
  }
  /// The smallest block of at least `size` bytes, of equals the one of lowest rank; null if there is none.
  CachedBlock* best_fit(std::uint64_t size) const { return first_from(size, 0); }
  /// The next one in order of size and rank.
  CachedBlock* after(const CachedBlock* block) const { return first_from(block->size, block->rank() + 1); }
  CachedBlock* largest() const;
  /// All, in order.
  std::vector<CachedBlock*> in_order() const;

 private:
  struct Entry {
    Entry(std::uint64_t its_size, std::uint64_t its_rank, CachedBlock* its_block)
        : size(its_size), rank(its_rank), block(its_block) {}
    std::uint64_t size;
    std::uint64_t rank;
    CachedBlock* block;
  };
  using Entries = std::vector<Entry>;
  static constexpr std::size_t kBins = 512;

  static std::size_t bin_of(std::uint64_t size) {
    const std::uint64_t units = size >> 9;
    if (units < 8) return units;
    const auto exponent = static_cast<unsigned>(std::bit_width(units)) - 1;
    return std::size_t{exponent - 2} * 8 + ((units >> (exponent - 3)) & 7);
  }
  /// Whether the entry comes after (size, rank).
  static bool above(const Entry& entry, std::uint64_t size, std::uint64_t rank) {
    return entry.size > size || (entry.size == size && entry.rank > rank);
  }
  void mark(std::size_t bin) { filled_[bin / 64] |= std::uint64_t{1} << (bin % 64); }
  void clear(std::size_t bin) { filled_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64)); }

  CachedBlock* first_from(std::uint64_t size, std::uint64_t rank) const {
    const std::size_t bin = bin_of(size);
    const Entries& entries = bins_[bin];
    if (!entries.empty()) {
      const Entry& smallest = entries.back();
      if (smallest.size > size || (smallest.size == size && smallest.rank >= rank)) return smallest.block;
      if (CachedBlock* block = find_inside(entries, size, rank)) return block;
    }
    std::size_t word = bin / 64;
    std::uint64_t bits = filled_[word] & (~std::uint64_t{1} << (bin % 64));
    while (bits == 0) {
      if (++word == filled_.size()) return nullptr;
      bits = filled_[word];
    }
    return bins_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))].back().block;
  }
  static void insert_inside(Entries& entries, CachedBlock* block);
  static void erase_inside(Entries& entries, const CachedBlock* block);
  static CachedBlock* find_inside(const Entries& entries, std::uint64_t size, std::uint64_t rank);

  std::array<Entries, kBins> bins_;
  std::array<std::uint64_t, kBins / 64> filled_{};  ///< bit b: bin b is not empty
};

}  // namespace qlp
