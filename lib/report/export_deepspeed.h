// A ZeRO plan as DeepSpeed's JSON file.
#pragma once

#include <string>

#include "base/result.h"
#include "plan/sharding_plan.h"

namespace qlp {

/// Every option of the plan, "auto" where transformers is to fill it in; sizes of batches are "auto" too. Errors:
/// "not-a-deepspeed-plan".
Result<std::string> deepspeed_config(const NamedPlan& plan);

}  // namespace qlp
