// A plan's report as JSON, and what a scheduler must give it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "estimate/report.h"

namespace qlp {

nlohmann::ordered_json plan_json(const PlanReport& plan, const JobSpec& job);
nlohmann::ordered_json resources_json(const Resources& resources);

}  // namespace qlp
