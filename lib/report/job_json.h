// A job with its defaults filled in, under the keys of the job file.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "estimate/report.h"
#include "plan/job_spec.h"

namespace qlp {

nlohmann::ordered_json job_json(const JobSpec& job);
/// The same with how many parameters the model has.
nlohmann::ordered_json job_json(const JobSpec& job, const ParameterCounts& parameters);

/// Its dimensions, and how sequences travel where they are shared.
nlohmann::ordered_json mesh_json(const Mesh& mesh);

/// The options of a plan, under the names of its runtime.
nlohmann::ordered_json plan_options_json(const ShardingPlan& plan);

}  // namespace qlp
