// The lower bound of a plan's step time with every figure behind it, and what each collective sends.
#pragma once

#include <string>

#include "estimate/report.h"

namespace qlp {

/// Empty for a plan that neither communicates nor has a bound.
std::string step_text(const PlanReport& plan, const JobSpec& job, bool colors);

}  // namespace qlp
