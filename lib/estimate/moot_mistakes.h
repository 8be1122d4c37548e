// Mistakes that are none in this job.
#pragma once

#include "estimate/report.h"

namespace qlp {

/// Takes out of the report the mistakes that take to the byte what the plan takes that was meant, each with a note that
/// says so.
void leave_out_moot_mistakes(Report& report);

}  // namespace qlp
