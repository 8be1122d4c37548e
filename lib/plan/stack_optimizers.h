// Which optimizers a stack has and what they do, by version of torch, transformers and bitsandbytes.
#pragma once

#include "optim/optimizer_kind.h"
#include "plan/stack_versions.h"

namespace qlp {

class OptimizerStack {
 public:
  explicit OptimizerStack(const StackVersions& versions)
      : torch_(versions.torch), transformers_(versions.transformers), bitsandbytes_(versions.bitsandbytes) {}

  OptimizerBehaviour behaviour() const;

  /// torch/optim/_muon.py, 2.9.
  bool torch_has_muon() const { return torch_ >= Version{2, 9, 0}; }
  /// The Trainer knows schedule_free_radam: in 4.57, not in 4.48 (huggingface/transformers 35313).
  bool trainer_has_schedule_free_radam() const { return transformers_ >= Version{4, 51, 0}; }
  /// The Trainer knows apollo_adamw. transformers 4.49 (huggingface/transformers 36062).
  bool trainer_has_apollo() const { return transformers_ >= Version{4, 49, 0}; }
  /// The Trainer knows stable_adamw. transformers 4.54 (huggingface/transformers 39446).
  bool trainer_has_stable_adamw() const { return transformers_ >= Version{4, 54, 0}; }
  /// bitsandbytes/optim/ademamix.py, 0.44.
  bool bnb_has_ademamix() const { return bitsandbytes_ >= Version{0, 44, 0}; }
  /// Parameters on the host are updated there (backends/cpu/ops.py, 0.50.0 on); before, kernels of the GPU met them.
  bool bnb_steps_on_host() const { return bitsandbytes_ >= Version{0, 50, 0}; }
  /// state_dict() has an optimizer's tensors in a dict of its own, which FSDP passes on as it is (0.49.2, PR 1840).
  bool bnb_wraps_states() const { return bitsandbytes_ >= Version{0, 49, 2}; }
  /// Optimizers take states of another dtype than the gradients: so in torch 2.14, not in 2.8
  /// (_group_tensors_by_device_and_dtype).
  bool groups_mixed_dtypes() const { return torch_ >= Version{2, 9, 0}; }

 private:
  Version torch_;
  Version transformers_;
  Version bitsandbytes_;
};

}  // namespace qlp
