// What a plan does with each parameter of a model, and which modules are gathered together.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/enum_names.h"
#include "base/result.h"
#include "nn/parameter_role.h"
#include "plan/job_spec.h"

namespace qlp {

enum class Placement : std::uint8_t {
  sharded,     ///< every rank holds its part between uses
  ignored,     ///< whole on every rank, and left alone by the runtime (ignored_params)
  replicated,  ///< whole on every rank, kept alike by the runtime
};

template <>
inline constexpr std::array<EnumName<Placement>, 3> kEnumNames<Placement>{{
    {Placement::sharded, "sharded"},
    {Placement::ignored, "ignored"},
    {Placement::replicated, "replicated"},
}};

/// What one dimension of the mesh does with a parameter: each of its ranks has a part of `dim`, or where there is none
/// the same.
struct AxisPlacement {
  std::string axis;  ///< dp_replicate, dp_shard, cp, tp, ep; "efsdp" shards experts that ranks share
  std::optional<int> dim;
};

struct MappedParameter {
  std::string name;  ///< as named_parameters() has it, of the model that is trained: PEFT's where there is an adapter
  ParamRole role = ParamRole::base_weight;
  DType dtype = DType::bfloat16;  ///< as it is stored
  std::int64_t elements = 0;      ///< of the weight itself; more than are stored where it is packed
  bool trainable = false;
  bool quantized = false;
  Placement placement = Placement::replicated;
  std::vector<AxisPlacement> axes;  ///< of more than one rank, the outermost first; none without cluster.mesh
  std::int64_t stage = 0;           ///< of the pipeline, whose ranks alone have it
};

/// Modules whose parameters are gathered together, by name; "" is the model.
struct WrapUnit {
  std::vector<std::string> modules;
  bool reshard_after_forward = true;
};

struct ShardMap {
  std::vector<WrapUnit> units;  ///< in the order in which they are wrapped, the root last; none without FSDP
  std::vector<MappedParameter> parameters;  ///< of all stages
};

/// Errors: those with which the plan refuses the job.
Result<ShardMap> shard_map(const JobSpec& job, const NamedPlan& plan);

}  // namespace qlp
