#include "estimate/communication.h"

#include <algorithm>

#include "base/rounding.h"

namespace qlp {

std::uint64_t sent_bytes(Collective kind, std::int64_t ranks, std::uint64_t whole) {
  if (ranks <= 1) return 0;
  const std::uint64_t own = whole / static_cast<std::uint64_t>(ranks);
  switch (kind) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      return whole - own;
    case Collective::all_reduce:
      return 2 * (whole - own);
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send:
      return whole;
    case Collective::recv:
      return 0;
  }
  return whole;
}

GroupLayout layout_of(const RankGroup& group, std::int64_t gpus_per_node) {
  GroupLayout layout;
  layout.ranks_on_node = std::clamp(gpus_per_node / group.stride, std::int64_t{1}, group.size);
  layout.nodes = ceil_div(group.size, layout.ranks_on_node);
  return layout;
}

Communication communication_of(const std::vector<StepPhase>& step) {
  Communication out;
  for (const StepPhase& phase : step) {
    const auto times = static_cast<std::uint64_t>(phase.times);
    for (const CollectiveEvent& event : phase.work.collectives) {
      auto total = std::ranges::find_if(
          out.collectives, [&](const CollectiveTotal& t) { return t.kind == event.kind && t.group == event.group; });
      if (total == out.collectives.end())
        total = out.collectives.insert(total, {.kind = event.kind, .group = event.group});
      const Bytes sent{sent_bytes(event.kind, event.group.size, event.bytes)};
      total->count += times;
      total->payload += Bytes{event.bytes} * times;
      total->sent += sent * times;
      out.sent += sent * times;
    }
    out.host_to_device += Bytes{phase.work.host_to_device_bytes} * times;
    out.device_to_host += Bytes{phase.work.device_to_host_bytes} * times;
  }
  std::ranges::stable_sort(out.collectives, std::ranges::greater{}, &CollectiveTotal::sent);
  return out;
}

}  // namespace qlp
