// A job with its defaults filled in, under the keys of the job file.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/job_spec.h"

namespace qlp {

nlohmann::ordered_json job_json(const JobSpec& job);

/// The options of a plan, under the names of its runtime.
nlohmann::ordered_json plan_options_json(const ShardingPlan& plan);

}  // namespace qlp
