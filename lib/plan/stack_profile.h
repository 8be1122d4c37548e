// What the libraries of a stack do, by version: every behaviour that changed is one named predicate with its source.
#pragma once

#include "plan/load_behaviour.h"
#include "plan/stack_models.h"
#include "plan/stack_optimizers.h"
#include "plan/stack_peft.h"
#include "plan/stack_sharding.h"
#include "plan/stack_torch.h"
#include "plan/stack_trainer.h"
#include "plan/stack_versions.h"
#include "quant/quant_behaviour.h"

namespace qlp {

struct StackProfile {
  explicit StackProfile(const StackVersions& versions);

  TorchStack torch;
  ModelStack models;
  TrainerStack trainer;
  PeftStack peft;
  OptimizerStack optimizers;
  Fsdp1Stack fsdp1;
  Fsdp2Stack fsdp2;
  ZeroStack zero;
  LoadBehaviour load;
  QuantBehaviour quant;
};

}  // namespace qlp
