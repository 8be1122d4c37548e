// Which modules accelerate hands to fully_shard, in its order (fsdp2_prepare_model, accelerate/utils/fsdp_utils.py).
#pragma once

#include <vector>

#include "nn/causal_lm.h"
#include "shard/fsdp2_options.h"

namespace qlp {

/// Modules whose parameters are gathered together.
struct Fsdp2Unit {
  std::vector<Module*> modules;
  ReshardAfterForward reshard_after_forward;
  bool experts = false;  ///< on the mesh of expert parallelism
};

/// By the policy.
bool is_wrapped(const Module& module, const Fsdp2Preparation& preparation);

/// The root comes last.
std::vector<Fsdp2Unit> fsdp2_units(CausalLm& model, const Fsdp2Preparation& preparation,
                                   const Fsdp2Behaviour& behaviour);

/// The same for transformers, by the plans of its models (base_model_fsdp_plan; distributed/fsdp.py, 5.24). A tied head
/// is part of the root. Experts that ranks share come first.
std::vector<Fsdp2Unit> fsdp2_units_at_load(CausalLm& model, const ReshardAfterForward& of_layers);

}  // namespace qlp
