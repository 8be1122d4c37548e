#include "estimate/step_work.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "estimate/rank_report.h"

namespace qlp {
namespace {

bool ends_a_step(const Phase& phase) { return glossary_phase(phase.name) == "zero_grad"; }

/// Requested bytes of what the optimizer keeps on the device.
std::uint64_t optimizer_state_bytes(const DryRun& run) {
  std::uint64_t bytes = 0;
  for (const LiveAllocation& block : run.timeline.live_at(run.last_event))
    if (block.label.category == Category::optimizer_state) bytes += block.requested;
  return bytes;
}

/// The last but one of the forward and of the backward passes does what those do that were left out.
void stand_for(std::vector<StepPhase>& step, std::string_view phase, std::int64_t passes) {
  std::vector<StepPhase*> played;
  for (StepPhase& entry : step)
    if (entry.phase == phase) played.push_back(&entry);
  const auto left_out = passes - static_cast<std::int64_t>(played.size());
  if (left_out > 0 && played.size() > 1) played[played.size() - 2]->times += left_out;
}

}  // namespace

std::vector<StepPhase> last_step(const DryRun& run, const TrainingSpec& training) {
  const std::vector<Phase>& phases = run.timeline.phases();
  const auto end = std::find_if(phases.rbegin(), phases.rend(), ends_a_step);
  if (end == phases.rend()) return {};
  const auto before = std::find_if(std::next(end), phases.rend(), ends_a_step);

  std::vector<StepPhase> step;
  for (auto phase = before.base(); phase != end.base(); ++phase) {
    StepPhase entry{.phase = glossary_phase(phase->name)};
    constexpr std::string_view kWords[] = {"forward", "backward", "optimizer_step", "zero_grad"};
    if (std::ranges::find(kWords, entry.phase) == std::end(kWords)) continue;
    entry.work = run.work[static_cast<std::size_t>(phase - phases.begin())];
    if (entry.phase == "optimizer_step") entry.work.memory_bytes += 2 * optimizer_state_bytes(run);
    step.push_back(std::move(entry));
  }
  stand_for(step, "forward", training.gradient_accumulation_steps);
  stand_for(step, "backward", training.gradient_accumulation_steps);
  return step;
}

}  // namespace qlp
