// Training files of other tools as jobs: axolotl, LLaMA-Factory, TRL.
#pragma once

#include <string>

#include "config/foreign_file.h"

namespace qlp {

/// Whether the map is no job file, but something that other tools write.
bool is_foreign(const TextNode& root);

/// The job that a training file means, as the tree of a job file, with what beats it laid over it. None where it has
/// errors: "not-a-job" for what other tools write that is no training file, "not-supported". Keys that are not known
/// are warnings.
NodePtr job_of_foreign(const TextNode& root, const TextNode& overrides, const FileReader& files, Findings& findings);

/// The same of a file that a job names.
NodePtr job_of_foreign_file(const std::string& path, const KeyPlace& named, const TextNode& overrides,
                            const FileReader& files, Findings& findings);

}  // namespace qlp
