// Machine profiles as files: YAML, strict, written by `verify --calibrate` and given to --machine.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/job_reader.h"
#include "plan/machine_profile.h"

namespace qlp {

/// Reads a profile. On failure all errors of the file at once, with the codes of job_reader.h.
Result<MachineProfile> read_machine(std::string_view text, const std::string& file_name);
Result<MachineProfile> read_machine_file(const std::string& path);

/// The file that read_machine reads back as the same profile.
std::string to_yaml(const MachineProfile& profile);

/// Plans the job on this machine: its terms and its capacity, unless the job has one of its own, and no margin, unless
/// the job asks for one. The error says why the profile is of no use here: "another-machine".
Diagnostics use_machine(JobDocument& document, const MachineProfile& profile, const std::string& file_name);

}  // namespace qlp
