// What `check` found, as people read it.
#pragma once

#include <string>

#include "estimate/report.h"

namespace qlp {

/// The findings of a checked report, each with its evidence, its fix and what the fix gives; a line that counts them.
std::string findings_text(const Report& report, bool colors);

}  // namespace qlp
