// Counts the bytes that an allocator takes from its source, so that others can read how many they are.
#pragma once

#include <atomic>

#include "base/bytes.h"
#include "memory/segment_source.h"

namespace qlp {

class CountedSegments final : public SegmentSource {
 public:
  explicit CountedSegments(SegmentSource& source) : source_(source) {}

  /// Taken and not given back; may be read on any thread.
  Bytes held() const { return Bytes{held_.load()}; }

  std::uint64_t capacity() const override { return source_.capacity(); }
  std::optional<std::uint64_t> allocate(std::uint64_t bytes) override {
    const auto address = source_.allocate(bytes);
    if (address) held_ += bytes;
    return address;
  }
  void release(std::uint64_t address, std::uint64_t bytes) override {
    source_.release(address, bytes);
    held_ -= bytes;
  }
  std::uint64_t reserve(std::uint64_t bytes) override { return source_.reserve(bytes); }
  void unreserve(std::uint64_t address, std::uint64_t bytes) override { source_.unreserve(address, bytes); }
  bool map(std::uint64_t address, std::uint64_t bytes) override {
    const bool mapped = source_.map(address, bytes);
    if (mapped) held_ += bytes;
    return mapped;
  }
  void unmap(std::uint64_t address, std::uint64_t bytes) override {
    source_.unmap(address, bytes);
    held_ -= bytes;
  }

 private:
  SegmentSource& source_;
  std::atomic<std::uint64_t> held_{0};
};

}  // namespace qlp
