// What a plan's optimizer is refused for.
#pragma once

#include <string>

#include "estimate/optimizer_rules.h"
#include "plan/catalogue.h"

namespace qlp {

/// The code of the first refusal, or none.
inline std::string refused(JobSpec job, const char* optimizer, const char* plan) {
  job.training.optimizer = named_optimizer(optimizer);
  const auto refusals = check_optimizer(job, find_plan(plan)->plan, StackProfile(job.stack));
  return refusals.empty() ? "" : refusals.front().code;
}

}  // namespace qlp
