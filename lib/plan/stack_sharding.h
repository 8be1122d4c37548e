// What the sharding runtimes do, by version of torch, accelerate and DeepSpeed.
#pragma once

#include "plan/stack_versions.h"
#include "shard/fsdp2_options.h"

namespace qlp {

/// FSDP1 (torch.distributed.fsdp.FullyShardedDataParallel).
class Fsdp1Stack {
 public:
  explicit Fsdp1Stack(const StackVersions& versions) : torch_(versions.torch), accelerate_(versions.accelerate) {}

  /// Changed parameters are written back under NO_SHARD too: so in torch 2.14, not in 2.8 (_flat_param.py,
  /// pytorch/pytorch 154369).
  bool flattens_written_back() const { return torch_ >= Version{2, 9, 0}; }
  /// clip_grad_norm_ keeps a zero for units without gradients: so in torch 2.8, not in 2.4
  /// (fully_sharded_data_parallel.py, _zero_scalar).
  bool keeps_zero_scalar() const { return torch_ >= Version{2, 5, 0}; }
  /// clip_grad_norm_ takes gradients of one dtype only; seen in torch 2.8, not in 2.14
  /// (fully_sharded_data_parallel.py, _get_grad_norm).
  bool clips_one_dtype() const { return torch_ < Version{2, 9, 0}; }
  /// Beside NCCL's group accelerate makes one for the CPU where FSDP offloads (state.py, PartialState: 1.8, not
  /// in 1.6).
  bool offload_adds_cpu_group() const { return accelerate_ >= Version{1, 8, 0}; }

 private:
  Version torch_;
  Version accelerate_;
};

/// FSDP2 (torch's fully_shard, as accelerate calls it).
class Fsdp2Stack {
 public:
  explicit Fsdp2Stack(const StackVersions& versions) : torch_(versions.torch), accelerate_(versions.accelerate) {}

  /// It is there, and accelerate can use it. torch 2.6, accelerate 1.6 (fsdp_version); 1.11 and 1.12 hand it
  /// ignored_params in any case, which is of torch 2.7 (fsdp_utils.py).
  bool exists() const {
    const bool needs_ignored = accelerate_ >= Version{1, 11, 0} && accelerate_ < Version{1, 13, 0};
    return torch_ >= (needs_ignored ? Version{2, 7, 0} : Version{2, 6, 0}) && accelerate_ >= Version{1, 6, 0};
  }
  Fsdp2Behaviour behaviour() const;
  /// What accelerate's fsdp2_prepare_model does to parameters in 16 bit under mixed precision. fsdp_utils.py.
  Fsdp2Upcast upcast() const;

  /// Embedding and head are units of their own. accelerate fsdp_utils.py, 1.14 (huggingface/accelerate 4015).
  bool splits_root() const { return accelerate_ >= Version{1, 14, 0}; }
  /// While parameters are cut, the optimizer holds tensors of one element in their place; before, empty copies of them.
  /// accelerate accelerator.py, 1.9 (1.8 did not, 1.10 does).
  bool drops_optimizer_parameters() const { return accelerate_ >= Version{1, 9, 0}; }
  /// 4-bit weights stored as integers stay whole on every rank. accelerate fsdp_utils.py, 1.14
  /// (huggingface/accelerate 3987); needs ignored_params of torch 2.7.
  bool ignores_integer_storage() const { return accelerate_ >= Version{1, 14, 0} && torch_ >= Version{2, 7, 0}; }
  /// ignored_modules become ignored_params. torch 2.7 (_fully_shard.py), accelerate 1.11 (fsdp_utils.py).
  bool has_ignored_params() const { return torch_ >= Version{2, 7, 0} && accelerate_ >= Version{1, 11, 0}; }
  /// A mesh of dp_replicate x dp_shard. accelerate 1.10 (parallelism_config.py).
  bool has_hybrid_mesh() const { return accelerate_ >= Version{1, 10, 0}; }
  /// A state dict is broadcast to all ranks; before, to the group of a mesh that may have one dimension only.
  /// accelerate 1.11 (fsdp_utils.py, fsdp2_load_full_state_dict).
  bool loads_in_hybrid_mesh() const { return accelerate_ >= Version{1, 11, 0}; }
  /// What is loaded from rank 0 goes back to the host under offload. accelerate 1.13 (the same function).
  bool loads_offloaded() const { return accelerate_ >= Version{1, 13, 0}; }
  /// A FULL_STATE_DICT of adapters is gathered; before, the first rank writes its parts of them. accelerate
  /// fsdp_utils.py, _get_model_state_dict: 1.15, not in 1.14.
  bool gathers_adapters() const { return accelerate_ >= Version{1, 15, 0}; }
  /// A group may hold frozen parameters of another dtype than the trained ones. torch 2.8 (pytorch/pytorch 154103).
  bool mixes_frozen_dtypes() const { return torch_ >= Version{2, 8, 0}; }
  /// A parameter that is shared by two groups is an error. torch 2.13 (_fsdp_state.py, _validate_no_duplicate_params).
  bool refuses_shared() const { return torch_ >= Version{2, 13, 0}; }

 private:
  Version torch_;
  Version accelerate_;
};

/// DeepSpeed's ZeRO.
class ZeroStack {
 public:
  explicit ZeroStack(const StackVersions& versions) : deepspeed_(versions.deepspeed) {}

  /// Stage 3 gathers mixtures of experts as a whole, without being told. DeepSpeed 0.18 (deepspeedai/DeepSpeed 7604).
  bool finds_leaves() const { return deepspeed_ >= Version{0, 18, 0}; }

 private:
  Version deepspeed_;
};

}  // namespace qlp
