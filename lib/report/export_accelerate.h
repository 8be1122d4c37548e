// A plan as the file that `accelerate launch --config_file` reads.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/job_spec.h"

namespace qlp {

/// The name under which a ZeRO plan's own file is looked for, beside accelerate's.
inline constexpr std::string_view kDeepspeedConfigFile = "ds_config.json";

/// Sets up exactly the plan on the job's cluster. Errors ("not-in-accelerate"): each option that such a file has no key
/// for.
Result<std::string> accelerate_config(const JobSpec& job, const NamedPlan& plan);

}  // namespace qlp
