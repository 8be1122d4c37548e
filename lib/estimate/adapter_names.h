// What a user should know about the names that an adapter gives.
#pragma once

#include "base/diagnostic.h"
#include "plan/job_spec.h"

namespace qlp {

/// Warnings: names of target_modules, exclude_modules, modules_to_save, rank_pattern and alpha_pattern that PEFT passes
/// over, as no module of the model is called so. (Targets of which none is there are an error of every plan.)
Diagnostics adapter_warnings(const JobSpec& job);

}  // namespace qlp
