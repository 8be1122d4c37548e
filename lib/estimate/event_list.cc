#include "estimate/event_list.h"

#include <cstdint>
#include <string_view>

#include "tensor/op.h"

namespace qlp {

std::string event_list(const DryRun& run) {
  const Timeline& timeline = run.timeline;
  std::string text = "action,block,size,stream,phase,op,module\n";
  std::string_view phase;
  for (std::uint32_t i = 0; i <= run.last_event; ++i) {
    const auto [kind, index] = timeline.event(i);
    if (kind == TimelineEvent::Kind::begin_phase) phase = timeline.phases()[index].name;
    const bool made = kind == TimelineEvent::Kind::allocate;
    if (!made && kind != TimelineEvent::Kind::free) continue;
    const AllocationLabel label = timeline.label_of(index);
    text += made ? "alloc," : "free_requested,";
    text += std::to_string(index) + "," + std::to_string(timeline.requested_of(index)) + ",";
    text += std::to_string(timeline.stream_of(index)) + ",";
    text += phase;
    text += ",";
    text += name_of(static_cast<Op>(label.op));
    text += ",";
    text += run.modules.name(label.module);
    text += "\n";
  }
  return text;
}

}  // namespace qlp
