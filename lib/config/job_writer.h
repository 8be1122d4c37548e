// A job back as a job file.
#pragma once

#include <string>

#include "plan/job_spec.h"

namespace qlp {

/// The job as canonical YAML: every default written out, the model as its shapes. read_job of it gives the same job
/// (but for the words of GpuSpec::capacity_source where the capacity is not the job's own).
std::string to_yaml(const JobSpec& job);

}  // namespace qlp
