// From the record of a run for real to what its rank measured.
#pragma once

#include <cstdint>

#include "estimate/dry_run.h"
#include "verify/rank_measurement.h"

namespace qlp {

/// The allocator's figures of each phase, losses and gradient norms; device, readings and communicators are left out.
RankMeasurement measurement_of(const DryRun& run, std::int64_t rank);

}  // namespace qlp
