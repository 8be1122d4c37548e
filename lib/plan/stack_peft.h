// What PEFT's LoRA knows and does, by version (src/peft/tuners/lora/config.py where nothing else is named).
#pragma once

#include "nn/behaviour.h"
#include "plan/stack_versions.h"

namespace qlp {

class PeftStack {
 public:
  explicit PeftStack(const StackVersions& versions) : peft_(versions.peft) {}

  AdapterBehaviour behaviour() const {
    return {.dora_reuses_base_result = peft_ >= Version{0, 14, 0},
            .dora_is_variant = peft_ >= Version{0, 16, 0},
            .dora_identity_in_adapter_dtype = peft_ >= Version{0, 19, 0},
            .trains_bare_biases = peft_ < Version{0, 19, 0}};
  }

  bool has_exclude_modules() const { return peft_ >= Version{0, 14, 0}; }
  bool has_lora_bias() const { return peft_ >= Version{0, 14, 0}; }
  bool has_trainable_tokens() const { return peft_ >= Version{0, 15, 0}; }
  bool has_target_parameters() const { return peft_ >= Version{0, 17, 0}; }
  /// What is in modules_to_save is never a target (tuners_utils.py, check_target_module_exists, 0.16 on).
  bool spares_saved_modules() const { return peft_ >= Version{0, 16, 0}; }
  /// What adapters add to an embedding that scales itself is scaled too (tuners_utils.py, _get_embed_scale).
  bool scales_embeddings() const { return peft_ >= Version{0, 18, 0}; }
  /// layers_to_transform looks at the first number of a name, before at the last, an expert's (the same, 0.20 on).
  bool finds_layer_of_expert() const { return peft_ >= Version{0, 20, 0}; }
  /// PEFT takes old names of experts for their parameters, and folds updates into copies; looked at in 0.21
  /// (transformers_weight_conversion.py, lora/layer.py).
  bool adapts_expert_parameters() const { return peft_ >= Version{0, 21, 0}; }

 private:
  Version peft_;
};

}  // namespace qlp
