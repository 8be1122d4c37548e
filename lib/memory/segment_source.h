// Where the allocator's segments come from: a counter on the dry device, recorded addresses in tests, a driver later.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memory/block.h"

namespace qlp {

/// What a caching allocator asks of the layer below it; the counterpart of the CUDA calls named at each function.
/// Addresses and sizes are in bytes.
class SegmentSource {
 public:
  SegmentSource() = default;
  SegmentSource(const SegmentSource&) = delete;
  SegmentSource& operator=(const SegmentSource&) = delete;
  virtual ~SegmentSource() = default;

  /// All memory of the device, used or not (totalGlobalMem): the base of a memory fraction and of address spaces.
  virtual std::uint64_t capacity() const = 0;

  /// A segment of its own (cudaMalloc); none when memory is out.
  virtual std::optional<std::uint64_t> allocate(std::uint64_t bytes) = 0;
  /// Gives back a whole segment (cudaFree).
  virtual void release(std::uint64_t address, std::uint64_t bytes) = 0;

  /// Address space without memory (cuMemAddressReserve), for one expandable segment of `stream`.
  virtual std::uint64_t reserve(std::uint64_t bytes) = 0;
  /// Gives back an address space in which nothing is mapped (cuMemAddressFree).
  virtual void unreserve(std::uint64_t address, std::uint64_t bytes) = 0;
  /// Puts memory behind part of an address space (cuMemCreate, cuMemMap); false, and nothing mapped, when memory is
  /// out.
  virtual bool map(std::uint64_t address, std::uint64_t bytes) = 0;
  /// Takes the memory back (cuMemUnmap, cuMemRelease).
  virtual void unmap(std::uint64_t address, std::uint64_t bytes) = 0;
};

/// The dry device: no memory behind the addresses, and out of memory past `limit`. Like a process that maps its memory
/// on Linux, it hands out addresses from the top down, each time from the highest gap that holds the segment and 2 MiB
/// of distance. (Only the order of addresses means something: it decides between free blocks of equal size.)
class CounterSource final : public SegmentSource {
 public:
  /// The capacity of a device without limit: far more than any has, and little enough that there are addresses for an
  /// expandable segment of every stream and pool, each of which is larger than the device.
  static constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 54;

  explicit CounterSource(std::uint64_t limit = kUnlimited) : limit_(limit) {}
  /// The same within a range of addresses.
  CounterSource(std::uint64_t limit, std::uint64_t begin, std::uint64_t end) : limit_(limit), gaps_{{begin, end}} {}

  std::uint64_t capacity() const override { return limit_; }
  std::optional<std::uint64_t> allocate(std::uint64_t bytes) override;
  void release(std::uint64_t address, std::uint64_t bytes) override;
  std::uint64_t reserve(std::uint64_t bytes) override;
  void unreserve(std::uint64_t address, std::uint64_t bytes) override;
  bool map(std::uint64_t address, std::uint64_t bytes) override;
  void unmap(std::uint64_t address, std::uint64_t bytes) override;

  /// Bytes taken and not given back.
  std::uint64_t used() const { return used_; }

 private:
  struct Gap {
    std::uint64_t begin, end;
  };
  std::uint64_t take_addresses(std::uint64_t bytes);
  void give_addresses(std::uint64_t address, std::uint64_t bytes);

  std::uint64_t limit_;
  std::uint64_t used_ = 0;
  static constexpr std::uint64_t kLowest = std::uint64_t{1} << 32, kHighest = std::uint64_t{1} << 62;
  static_assert((kHighest - kLowest) / (kUnlimited + kUnlimited / 4) > 2ULL * kMaxStreams);
  std::vector<Gap> gaps_{{kLowest, kHighest}};  ///< free addresses, the highest first
};

}  // namespace qlp
