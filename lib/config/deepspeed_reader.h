// DeepSpeed's JSON file, the fields of which are those of plan/zero.h.
#pragma once

#include <optional>
#include <string>

#include "config/findings.h"
#include "config/text_node.h"
#include "plan/sharding_plan.h"

namespace qlp {

/// The plan of a DeepSpeed configuration. Unknown keys are warnings; what cannot be planned is an error.
std::optional<NamedPlan> read_deepspeed(const TextNode& root, const std::string& file, Findings& findings);

}  // namespace qlp
