#include "memory/timeline.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>

namespace qlp {

void Timeline::begin_phase(std::string_view name, const MemoryStats& now) {
  finish(now);
  const auto event = event_count();
  events_.push_back(pack(TimelineEvent::Kind::begin_phase, static_cast<std::uint32_t>(phases_.size())));
  if (phases_.size() > static_cast<std::size_t>(kMostPhases)) throw std::length_error("too many phases");
  Phase phase;
  phase.name = name;
  phase.first_event = event;
  phase.requested = {now.requested.current, event};
  phase.allocated = {now.allocated.current, event};
  phase.active = {now.active.current, event};
  phase.reserved = {now.reserved.current, event};
  phases_.push_back(std::move(phase));
}

void Timeline::finish(const MemoryStats& now) {
  if (!phases_.empty()) phases_.back().end = now;
}

AllocationId Timeline::allocated(const Block& block, const AllocationLabel& label, const MemoryStats& now) {
  assert(!phases_.empty());
  const auto id = static_cast<AllocationId>(allocations_.size());
  if (id >> kIndexBits != 0) throw std::length_error("too many allocations");
  const auto event = event_count();
  Phase& phase = phases_.back();
  raise(phase.requested, now.requested.current, event);
  raise(phase.allocated, now.allocated.current, event);
  raise(phase.active, now.active.current, event);
  raise(phase.reserved, now.reserved.current, event);
  allocations_.push_back({block.requested, static_cast<std::uint32_t>(block.size / 512), label.op, label.module,
                          static_cast<std::uint16_t>(phases_.size() - 1), static_cast<std::uint8_t>(label.category),
                          static_cast<std::uint8_t>(block.stream)});
  events_.push_back(pack(TimelineEvent::Kind::allocate, id));
  return id;
}

void Timeline::stream_recorded(AllocationId id, StreamId stream) {
  if (stream == allocations_[id].stream) return;
  events_.push_back(pack(TimelineEvent::Kind::record_stream, static_cast<std::uint32_t>(stream_uses_.size())));
  stream_uses_.push_back({id, stream});
}

void Timeline::relabelled(AllocationId id, const AllocationLabel& label) {
  events_.push_back(pack(TimelineEvent::Kind::relabel, static_cast<std::uint32_t>(relabellings_.size())));
  relabellings_.push_back({id, label});
}

AllocationLabel Timeline::label_of(AllocationId id) const {
  const Allocation& made = allocations_[id];
  return {static_cast<Category>(made.category), made.op, made.module};
}

std::vector<LiveAllocation> Timeline::live_at(std::uint32_t event_index) const {
  assert(event_index < event_count());
  std::vector<std::uint8_t> freed(allocations_.size());
  AllocationId made_until = 0, freed_count = 0;
  std::uint32_t relabelled_until = 0;
  for (std::uint32_t i = 0; i <= event_index; ++i) {
    const auto [kind, index] = event(i);
    if (kind == TimelineEvent::Kind::free)
      freed[index] = 1, ++freed_count;
    else if (kind == TimelineEvent::Kind::allocate)
      made_until = index + 1;
    else if (kind == TimelineEvent::Kind::relabel)
      relabelled_until = index + 1;
  }
  std::vector<LiveAllocation> live;
  live.reserve(made_until - freed_count);
  for (AllocationId id = 0; id < made_until; ++id) {
    if (freed[id]) continue;
    const Allocation& made = allocations_[id];
    live.push_back({id,
                    made.requested,
                    std::uint64_t{made.units} * 512,
                    made.stream,
                    made.phase,
                    {static_cast<Category>(made.category), made.op, made.module}});
  }
  for (std::uint32_t i = 0; i < relabelled_until; ++i) {
    const auto& [id, label] = relabellings_[i];
    const auto found = std::ranges::lower_bound(live, id, {}, &LiveAllocation::id);
    if (found != live.end() && found->id == id) found->label = label;
  }
  return live;
}

}  // namespace qlp
