// The job file: YAML, strict, to a JobSpec with every default filled in. configs/reference.yaml lists every key with
// its default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/file_reader.h"
#include "plan/job_spec.h"

namespace qlp {

/// What beats the file. Paths are as seen from the working folder.
struct JobOverrides {
  std::optional<std::string> gpu;
  std::optional<std::string> model;   ///< a config.json, its folder, or a name of the catalogue
  std::optional<std::string> launch;  ///< a file of accelerate or DeepSpeed: plans
  std::optional<std::int64_t> world_size;
};

struct JobDocument {
  JobSpec job;
  Diagnostics notes;  ///< defaults that were used ("default-used", "class-default"), and warnings
};

/// Reads a job. `file_name` is for messages, and model.config is relative to its folder. On failure all errors of the
/// file at once, in the order of their places, each with file, line, column, key path and what was expected. Codes:
/// yaml-syntax, not-text, empty-file, file-too-large; unknown-key, duplicate-key, duplicate-item, missing-key,
/// wrong-type, out-of-range, bad-value, bad-size, bad-percentage, not-supported, inconsistent-shapes; unknown-gpu,
/// unknown-model, unknown-plan, unsupported-model, no-default-targets, needs-adapter, bad-allocator; and those of
/// model_reader.h. A file of axolotl, LLaMA-Factory or TRL is read as one (foreign_job.h), and so is one that a job
/// names under `from`.
Result<JobDocument> read_job(std::string_view text, const std::string& file_name, const FileReader& files,
                             const JobOverrides& overrides = {});

/// The same from the disk; "cannot-read" where that fails.
Result<JobDocument> read_job_file(const std::string& path, const JobOverrides& overrides = {});

}  // namespace qlp
