// A verification as the part of the report that machines read.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "estimate/verification.h"

namespace qlp {

nlohmann::ordered_json verification_json(const Verification& verification);

/// "within_tolerance", "outside_tolerance", "out_of_memory", "failed", "interrupted".
std::string_view verdict_of(const Verification& verification);

}  // namespace qlp
