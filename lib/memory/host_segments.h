// Segments of real memory of the process, for a device that computes on the CPU.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/segment_source.h"

namespace qlp {

/// Hands out addresses in the order of CounterSource, so that blocks of equal size compare as they do in a dry run;
/// behind them is a range of address space whose pages come as they are touched and go when segments do.
class HostSegments final : public SegmentSource {
 public:
  /// `limit`: bytes, past which it is out of memory. Throws std::bad_alloc where there is no address space.
  explicit HostSegments(std::uint64_t limit = CounterSource::kUnlimited);
  ~HostSegments() override;

  std::uint64_t capacity() const override { return counter_.capacity(); }
  std::optional<std::uint64_t> allocate(std::uint64_t bytes) override { return counter_.allocate(bytes); }
  void release(std::uint64_t address, std::uint64_t bytes) override;
  std::uint64_t reserve(std::uint64_t bytes) override { return counter_.reserve(bytes); }
  void unreserve(std::uint64_t address, std::uint64_t bytes) override { counter_.unreserve(address, bytes); }
  bool map(std::uint64_t address, std::uint64_t bytes) override { return counter_.map(address, bytes); }
  void unmap(std::uint64_t address, std::uint64_t bytes) override;

 private:
  class Range {
   public:
    Range();
    ~Range();
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
    std::uint64_t begin() const { return begin_; }
    std::uint64_t end() const;
    /// The pages in it go; what is read there next is 0.
    static void drop(std::uint64_t address, std::uint64_t bytes);

   private:
    std::uint64_t begin_;
  };
  Range range_;
  CounterSource counter_;
};

}  // namespace qlp
