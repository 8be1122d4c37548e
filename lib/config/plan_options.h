// The options of one plan in a job file.
#pragma once

#include "config/map_reader.h"
#include "plan/sharding_plan.h"

namespace qlp {

/// Reads the options that `plan`'s runtime has into it; any other key is an error.
void read_plan_options(MapReader& map, ShardingPlan& plan);

}  // namespace qlp
