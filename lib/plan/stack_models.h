// What the models of transformers do, by version of it and of the torch below.
#pragma once

#include "model/model_spec.h"
#include "nn/behaviour.h"
#include "plan/stack_versions.h"

namespace qlp {

class ModelStack {
 public:
  explicit ModelStack(const StackVersions& versions) : transformers_(versions.transformers), torch_(versions.torch) {}

  /// The first transformers with the family's model class; "does not recognize this architecture" before.
  static Version first_with(Family family);
  bool knows(Family family) const { return transformers_ >= first_with(family); }

  ModelBehaviour behaviour(Family family) const;
  LigerBehaviour liger() const;

  /// masking_utils.py makes the masks. transformers 4.53.
  bool has_masking_utils() const { return transformers_ >= Version{4, 53, 0}; }
  /// AttentionInterface: one class of attention for all kernels. transformers 4.48, of most families.
  bool has_attention_functions() const { return transformers_ >= Version{4, 48, 0}; }
  /// A class of attention for each kernel (LlamaSdpaAttention; eager's is LlamaAttention). In OLMoE and Qwen 2 MoE up
  /// to 4.57 (modeling_olmoe.py, modeling_qwen2_moe.py), in all others before 4.48.
  bool has_attention_classes(Family family) const {
    const bool kept = family == Family::olmoe || family == Family::qwen2_moe;
    return kept ? transformers_ < Version{5, 0, 0} : !has_attention_functions();
  }
  /// Gemma 2 runs with sdpa; seen refused in 5.24 (modeling_utils.py, _check_and_adjust_attn_implementation), taken to
  /// hold for all of 5.
  bool gemma2_takes_sdpa() const { return transformers_ < Version{5, 0, 0}; }
  /// What a class keeps in float32 beside float16, it keeps beside 4-bit weights too (quantizer_bnb_4bit.py,
  /// use_keep_in_fp32_modules, until 4.57; not in 5.24).
  bool keeps_norms_beside_4bit() const { return transformers_ < Version{5, 0, 0}; }
  /// longrope's frequencies for short batches stay on the host, where the first pass meets them. transformers
  /// modeling_phi3.py, _longrope_frequency_update: from 4.48.0, mended in 4.48.3.
  bool leaves_longrope_on_host() const {
    return transformers_ >= Version{4, 48, 0} && transformers_ < Version{4, 48, 3};
  }

  /// Layers checkpoint themselves (GradientCheckpointingLayer), so FSDP1's wrapper stands outside of the region.
  /// transformers modeling_layers.py, 4.53.
  bool layers_checkpoint_themselves() const { return transformers_ >= Version{4, 53, 0}; }
  /// A layer's forward checkpoints itself, so all hooks stand outside of the region; before, its __call__ did, hooks
  /// included. transformers modeling_layers.py, 5.23.
  bool layers_checkpoint_forward() const { return transformers_ >= Version{5, 23, 0}; }

  /// from_pretrained shares layers among ranks by DTensor (distributed/tensor_parallel.py); looked at in 5.24 on torch
  /// 2.14.
  bool shards_layers() const { return layers_checkpoint_forward() && torch_ >= Version{2, 9, 0}; }
  /// Experts are stacks of matrices that one kernel multiplies; looked at in 5.24 (integrations/moe.py). 4.57 runs them
  /// one by one; what lies between is taken to be like the newer from where layers checkpoint in their forward.
  bool fuses_experts() const { return layers_checkpoint_forward(); }
  /// Experts run one by one. transformers modeling_mixtral.py, modeling_qwen3_moe.py and others, until 4.57.
  bool loops_over_experts() const { return transformers_ < Version{5, 0, 0}; }
  /// They are then lists of modules, but for GPT-OSS's (modeling_gpt_oss.py).
  bool lists_experts(Family family) const { return loops_over_experts() && family != Family::gpt_oss; }

 private:
  Version transformers_;
  Version torch_;
};

}  // namespace qlp
