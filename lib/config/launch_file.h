// What a file of `accelerate config`, or a DeepSpeed configuration, says about a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/file_reader.h"
#include "config/findings.h"
#include "plan/job_spec.h"

namespace qlp {

/// The plan, and what else the file says; what it leaves open is absent.
struct LaunchFile {
  NamedPlan plan;
  std::optional<std::int64_t> world_size;  ///< num_processes
  std::optional<std::int64_t> num_machines;
  std::optional<std::string_view> mixed_precision;  ///< "no", "bf16" or "fp16", where the Trainer's flag does not say
  std::optional<bool> ram_efficient_loading;        ///< fsdp_cpu_ram_efficient_loading
  std::optional<StateDictType> state_dict_type;     ///< fsdp_state_dict_type
  bool activation_checkpointing = false;            ///< fsdp_activation_checkpointing
  Mesh mesh;                                        ///< of parallelism_config as far as it shares sequences
};

/// Reads `path`: accelerate's YAML or JSON (told by distributed_type), a shard map (by wrap_units), else DeepSpeed's
/// JSON. Keys that are not known are warnings. None where it has errors: codes of job_reader.h, and
/// "not-a-launch-file". `named` is the key that names the file.
std::optional<LaunchFile> read_launch_file(const std::string& path, const KeyPlace& named, const FileReader& files,
                                           Findings& findings);
/// The same of DeepSpeed's JSON alone, which a file of accelerate may name.
std::optional<NamedPlan> read_deepspeed_file(const std::string& path, const KeyPlace& named, const FileReader& files,
                                             Findings& findings);

/// What the file means for this job: PEFT's wrap policy beside an adapter under FSDP1, and integers that FSDP2 leaves
/// whole, are the Trainer's and accelerate's doing and in no file.
NamedPlan plan_for(const LaunchFile& file, const JobSpec& job);

}  // namespace qlp
