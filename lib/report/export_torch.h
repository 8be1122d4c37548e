// What a plan does with each parameter, for training scripts that wrap their model themselves.
#pragma once

#include <string>

#include "base/result.h"
#include "plan/job_spec.h"

namespace qlp {

/// Python: WRAP_UNITS, and the names of parameters as SHARDED, IGNORED and REPLICATED; with a mesh also PLACEMENTS by
/// its dimensions, and STAGES.
Result<std::string> torch_lists(const JobSpec& job, const NamedPlan& plan);

/// The same as JSON, with role, dtype and size of every parameter, and a line for each role and kind of module.
Result<std::string> shard_map_json(const JobSpec& job, const NamedPlan& plan);

}  // namespace qlp
