// The sections of a job file, one reader each. They gather errors in the findings of the map they are given.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "config/file_reader.h"
#include "config/map_reader.h"
#include "plan/job_spec.h"

namespace qlp {

/// One section of the file, or its absence.
struct Section {
  const TextNode* node;
  KeyPlace place;
};

struct ModelSection {
  ModelSpec model;
  DType dtype = DType::bfloat16;
  Loading loading = Loading::automatic;
  std::optional<QuantizationSpec> checkpoint_quantization;
  bool known = false;  ///< the model could be read
};

ModelSection read_model_section(const Section& section, const FileReader& files, Findings& findings);
/// `load_dtype`: of the weights that are not quantized.
std::optional<QuantizationSpec> read_quantization_section(const Section& section, DType load_dtype, Findings& findings);
/// `family`: for PEFT's default targets; none where the model could not be read.
/// A text instead of a map names a file of PEFT.
std::optional<AdapterSpec> read_adapter_section(const Section& section, std::optional<Family> family,
                                                const FileReader& files, Findings& findings);
/// What a launch file says where the job file does not.
struct LaunchDefaults {
  std::int64_t world_size = 1;
  std::int64_t gpus_per_node = 8;
  std::string_view mixed_precision = "no";
  StateDictType state_dict_type = StateDictType::automatic;
  Mesh mesh;
};
TrainingSpec read_training_section(const Section& section, const StackVersions& stack, std::optional<Family> family,
                                   const LaunchDefaults& defaults, Findings& findings);
ClusterSpec read_cluster_section(const Section& section, const LaunchDefaults& defaults, Findings& findings);
std::vector<NamedPlan> read_plans_section(const Section& section, Findings& findings);
StackVersions read_stack_section(const Section& section, Findings& findings);

/// GpuSpec::capacity_source where the job file gives the capacity.
inline constexpr std::string_view kCapacityOfJob = "cluster.memory of the job file";

}  // namespace qlp
