#include "memory/segment_source.h"

#include <algorithm>
#include <cassert>

#include "base/rounding.h"

namespace qlp {
namespace {

/// The driver gives memory in pages of this size (cuMemGetAllocationGranularity).
constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

constexpr std::uint64_t whole_pages(std::uint64_t bytes) { return round_up(bytes, kPage); }

}  // namespace

std::uint64_t CounterSource::take_addresses(std::uint64_t bytes) {
  const std::uint64_t needed = bytes + kPage;
  auto gap = std::find_if(gaps_.begin(), gaps_.end(), [&](const Gap& g) { return g.end - g.begin >= needed; });
  assert(gap != gaps_.end());
  gap->end -= needed;
  const std::uint64_t address = gap->end;
  if (gap->begin == gap->end) gaps_.erase(gap);
  return address;
}

void CounterSource::give_addresses(std::uint64_t address, std::uint64_t bytes) {
  auto below = std::find_if(gaps_.begin(), gaps_.end(), [&](const Gap& g) { return g.begin < address; });
  if (below != gaps_.end() && below->end == address) {
    below->end += bytes;
  } else {
    gaps_.insert(below, {address, address + bytes});
  }
}

std::optional<std::uint64_t> CounterSource::allocate(std::uint64_t bytes) {
  bytes = whole_pages(bytes);
  if (bytes > limit_ - used_) return std::nullopt;
  used_ += bytes;
  return take_addresses(bytes);
}

void CounterSource::release(std::uint64_t address, std::uint64_t bytes) {
  bytes = whole_pages(bytes);
  used_ -= bytes;
  give_addresses(address, bytes);
}

std::uint64_t CounterSource::reserve(std::uint64_t bytes) { return take_addresses(whole_pages(bytes)); }

void CounterSource::unreserve(std::uint64_t address, std::uint64_t bytes) {
  give_addresses(address, whole_pages(bytes));
}

bool CounterSource::map(std::uint64_t /*address*/, std::uint64_t bytes) {
  if (bytes > limit_ - used_) return false;
  used_ += bytes;
  return true;
}

void CounterSource::unmap(std::uint64_t /*address*/, std::uint64_t bytes) { used_ -= bytes; }

}  // namespace qlp
