#include "verify/device_books.h"

#include <algorithm>
#include <utility>

namespace qlp {
namespace {

/// A part of the device that grew, or shrank, between two readings; a fall counts as nothing.
Bytes growth(Bytes before, Bytes after) { return after <= before ? Bytes{} : after.remove(before); }

/// What this process held beside its allocator.
Bytes beside_allocator(const DeviceReading& reading, Bytes others, bool by_process) {
  const Bytes held = by_process ? *reading.by_process : growth(others, reading.used);
  return growth(reading.segments, held);
}

}  // namespace

DeviceBooks device_books(const RankMeasurement& measured) {
  DeviceBooks books;
  const bool by_process = std::ranges::all_of(measured.readings, [](const DeviceReading& r) {
    return r.by_process.has_value() || r.point == reading_point::kSampledPeak;
  });
  const Bytes others = measured.device.used_by_others.value_or(Bytes{});
  Bytes before, pages = measured.managed_state;  // as far as they have not been seen on the device
  for (const DeviceReading& reading : measured.readings) {
    if (reading.point == reading_point::kSampledPeak) {
      books.device_used = reading.used;
      books.peak_source = reading.source;
      continue;
    }
    const Bytes now = beside_allocator(reading, others, by_process);
    const Bytes grown = growth(before, now);
    if (reading.point == reading_point::kContext)
      books.context += grown;
    else if (reading.point == reading_point::kNccl || reading.point == reading_point::kFirstCollective)
      books.nccl += grown;
    else if (reading.point == reading_point::kCublas)
      books.libraries += grown;
    else
      books.libraries += growth(std::exchange(pages, growth(grown, pages)), grown);
    if (reading.point == reading_point::kCublas) books.cublas += grown;
    before = std::max(before, now);
    books.source = by_process ? "NVML, of this process" : reading.source + ", less what others held before the run";
  }
  return books;
}

}  // namespace qlp
