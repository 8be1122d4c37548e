// From a job file and the options that beat it to a job.
#pragma once

#include <optional>
#include <string>

#include "app/common_arguments.h"
#include "base/diagnostic.h"
#include "config/job_reader.h"

namespace qlp::app {

/// The job with --gpus and --plan applied; none where the file has errors, which are on stderr then.
std::optional<JobDocument> read_job_input(const JobArguments& arguments, const CommonArguments& common);

/// The plan that a command about one plan is about: the job's only one, else the recommended; where none fits, the one
/// that comes nearest.
NamedPlan plan_in_question(const JobSpec& job);

/// Whether both are names of one file that is there.
bool same_file(const std::string& one, const std::string& other);
/// Whether writing the file would destroy one that the job is read from.
bool is_input(const std::string& path, const JobArguments& job);

/// Errors and warnings (with -v notes too) to stderr, as the options ask.
void show_diagnostics(const Diagnostics& diagnostics, const CommonArguments& common);

}  // namespace qlp::app
