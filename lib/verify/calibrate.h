// From what ranks measured to the profile of their machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/machine_profile.h"
#include "verify/rank_measurement.h"

namespace qlp {

/// The profile that these ranks of one run give; of each term the most that one of them measured. `before`: a profile
/// of the same GPU and versions, whose communicators are kept where this run had none like them. The error says what is
/// missing: the device's books were not read, or the GPUs differ from each other or from `before`.
Result<MachineProfile, std::string> calibrate(const std::vector<RankMeasurement>& ranks,
                                              const std::optional<MachineProfile>& before);

}  // namespace qlp
