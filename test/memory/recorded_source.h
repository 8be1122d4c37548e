// Stand-ins for the layers around an allocator in tests: segments at recorded addresses, and a log of its events.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memory/allocator_event.h"
#include "memory/segment_source.h"

namespace qlp::test {

/// One line of an allocator's history.
struct HistoryLine {
  std::string action;
  StreamId stream = 0;
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;

  friend bool operator==(const HistoryLine&, const HistoryLine&) = default;
};

inline std::string_view name_of(AllocatorEvent::Action action) {
  static constexpr std::string_view kNames[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                                "segment_free", "segment_map",    "segment_unmap",  "oom"};
  return kNames[static_cast<std::size_t>(action)];
}

class EventLog final : public AllocatorObserver {
 public:
  void on(const AllocatorEvent& event) override {
    lines.push_back({std::string(name_of(event.action)), event.stream, event.bytes, event.address});
  }
  std::vector<HistoryLine> lines;
};

/// Gives segments and address spaces the addresses of a recording, in their order. Past its end it is out of memory.
class RecordedSource final : public SegmentSource {
 public:
  explicit RecordedSource(std::uint64_t capacity) : capacity_(capacity) {}

  std::uint64_t capacity() const override { return capacity_; }
  std::optional<std::uint64_t> allocate(std::uint64_t bytes) override {
    if (used + bytes > capacity_ || segments.empty()) return std::nullopt;
    used += bytes;
    return take(segments);
  }
  void release(std::uint64_t /*address*/, std::uint64_t bytes) override { used -= bytes; }
  std::uint64_t reserve(std::uint64_t /*bytes*/) override { return take(address_spaces); }
  void unreserve(std::uint64_t /*address*/, std::uint64_t /*bytes*/) override {}
  bool map(std::uint64_t /*address*/, std::uint64_t bytes) override {
    if (used + bytes > capacity_) return false;
    used += bytes;
    return true;
  }
  void unmap(std::uint64_t /*address*/, std::uint64_t bytes) override { used -= bytes; }

  std::deque<std::uint64_t> segments;
  std::deque<std::uint64_t> address_spaces;
  std::uint64_t used = 0;

 private:
  static std::uint64_t take(std::deque<std::uint64_t>& addresses) {
    const std::uint64_t address = addresses.at(0);
    addresses.pop_front();
    return address;
  }
  std::uint64_t capacity_;
};

}  // namespace qlp::test
