// How the module tree of a job is built and behaves on its stack.
#pragma once

#include <cstdint>

#include "model/build.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// Whether Liger has kernels for a family; a model that it does not know it leaves as it is.
bool liger_knows(Family family, const StackVersions& stack);
/// And they are asked for.
bool uses_liger(const JobSpec& job);
/// The dtype in which the job's adapter is trained (peft tuners_utils.py, cast_adapter_dtype; TRL's cast).
DType adapter_dtype(const JobSpec& job);
ModelBehaviour model_behaviour(const JobSpec& job, const StackProfile& stack);
/// The part of the model that `rank` runs.
BuildOptions build_options(const JobSpec& job, std::int64_t rank, const StackProfile& stack);

}  // namespace qlp
