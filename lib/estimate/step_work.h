// The work of one optimizer step in the steady state: the last step of a dry run, with the micro steps left out of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimate/dry_run.h"
#include "plan/job_spec.h"

namespace qlp {

struct StepPhase {
  std::string phase;       ///< the glossary's word: forward, backward, optimizer_step, zero_grad
  std::int64_t times = 1;  ///< a micro step in the middle stands for those that were not played
  PhaseWork work;
};

/// In order. The optimizer's phase has the reading and writing of its state, which the run itself does not record.
std::vector<StepPhase> last_step(const DryRun& run, const TrainingSpec& training);

}  // namespace qlp
