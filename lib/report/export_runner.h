// A job under one plan as scripts/torch_runner.py reads it: every option, defaults filled in.
#pragma once

#include <string>

#include "base/result.h"
#include "plan/job_spec.h"

namespace qlp {

/// JSON: the job as in the report, the plan with its options and where the weights arrive (gpu, cpu, rank0), and
/// DeepSpeed's configuration where the plan is of DeepSpeed.
Result<std::string> runner_job(const JobSpec& job, const NamedPlan& plan);

}  // namespace qlp
