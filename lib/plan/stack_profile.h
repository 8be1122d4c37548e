// What the libraries of a stack do, by version: every behaviour that changed is one named predicate with its source.
#pragma once

#include "memory/host_memory.h"
#include "model/model_spec.h"
#include "nn/behaviour.h"
#include "optim/optimizer_kind.h"
#include "plan/stack_versions.h"
#include "quant/quant_behaviour.h"
#include "shard/fsdp2_options.h"

namespace qlp {

/// How transformers' from_pretrained puts a checkpoint on the GPU.
enum class Loader : std::uint8_t {
  by_tensor,  ///< 4.48: in the order of the files, each tensor through accelerate's set_module_tensor_to_device
  by_file,    ///< 4.57: names sorted in each file, after one allocation of the whole size that warms the cache
  by_name,    ///< 5: all names in natural order, after the same warm-up
};

struct LoadBehaviour {
  Loader loader = Loader::by_name;
  /// peft 0.19 on: adapters beside a 4-bit weight are made in the compute dtype; before, in the storage dtype if that
  /// is floating, else in float32 (tuners_utils.py, _move_adapter_to_device_of_base_layer).
  bool adapters_in_compute_dtype = true;
  bool casts_adapters = true;      ///< peft 0.12 on: get_peft_model knows autocast_adapter_dtype
  bool kbit_empties_cache = true;  ///< peft 0.20 on: prepare_model_for_kbit_training ends with empty_cache
};

class StackProfile {
 public:
  explicit StackProfile(const StackVersions& versions) : v_(versions) {}

  QuantBehaviour quant() const;
  AdapterBehaviour adapter() const;
  LigerBehaviour liger() const;
  AttentionBehaviour attention() const;
  ModelBehaviour model(Family family) const;
  LoadBehaviour load() const;
  OptimizerBehaviour optimizer() const;
  /// The first transformers with the family's model class; "does not recognize this architecture" before.
  static Version first_with(Family family);
  bool knows(Family family) const { return v_.transformers >= first_with(family); }
  /// What LoraConfig knows by version (peft, src/peft/tuners/lora/config.py).
  bool peft_has_exclude_modules() const { return v_.peft >= Version{0, 14, 0}; }
  bool peft_has_lora_bias() const { return v_.peft >= Version{0, 14, 0}; }
  bool peft_has_trainable_tokens() const { return v_.peft >= Version{0, 15, 0}; }
  /// What adapters add to an embedding that scales itself is scaled too (tuners_utils.py, _get_embed_scale).
  bool peft_scales_embeddings() const { return v_.peft >= Version{0, 18, 0}; }
  bool peft_has_target_parameters() const { return v_.peft >= Version{0, 17, 0}; }
  /// What is in modules_to_save is never a target (tuners_utils.py, check_target_module_exists, 0.16 on).
  bool peft_spares_saved_modules() const { return v_.peft >= Version{0, 16, 0}; }
  /// layers_to_transform looks at the first number of a name, before at the last, an expert's (the same, 0.20 on).
  bool peft_finds_layer_of_expert() const { return v_.peft >= Version{0, 20, 0}; }
  /// The Trainer knows schedule_free_radam: in 4.57, not in 4.48 (huggingface/transformers 35313).
  bool trainer_has_schedule_free_radam() const { return v_.transformers >= Version{4, 51, 0}; }
  /// The Trainer knows apollo_adamw. transformers 4.49 (huggingface/transformers 36062).
  bool trainer_has_apollo() const { return v_.transformers >= Version{4, 49, 0}; }
  /// The Trainer knows stable_adamw. transformers 4.54 (huggingface/transformers 39446).
  bool trainer_has_stable_adamw() const { return v_.transformers >= Version{4, 54, 0}; }
  /// torch/optim/_muon.py, 2.9.
  bool torch_has_muon() const { return v_.torch >= Version{2, 9, 0}; }
  /// bitsandbytes/optim/ademamix.py, 0.44.
  bool bnb_has_ademamix() const { return v_.bitsandbytes >= Version{0, 44, 0}; }
  /// Parameters on the host are updated there (backends/cpu/ops.py, 0.50.0 on); before, kernels of the GPU met them.
  bool bnb_steps_on_host() const { return v_.bitsandbytes >= Version{0, 50, 0}; }
  /// Optimizers take states of another dtype than the gradients: so in torch 2.14, not in 2.8
  /// (_group_tensors_by_device_and_dtype).
  bool groups_mixed_dtypes() const { return v_.torch >= Version{2, 9, 0}; }

  /// The Trainer turns the model's cache off (TrainingArguments.use_cache, trainer.py; seen in 5.24, not in 4.57, where
  /// only gradient_checkpointing does).
  bool trainer_turns_cache_off() const { return v_.transformers >= Version{5, 0, 0}; }
  /// What a class keeps in float32 beside float16, it keeps beside 4-bit weights too (quantizer_bnb_4bit.py,
  /// use_keep_in_fp32_modules, until 4.57; not in 5.24).
  bool keeps_norms_beside_4bit() const { return v_.transformers < Version{5, 0, 0}; }
  /// Gemma 2 runs with sdpa; seen refused in 5.24 (modeling_utils.py, _check_and_adjust_attn_implementation), taken to
  /// hold for all of 5.
  bool gemma2_takes_sdpa() const { return v_.transformers < Version{5, 0, 0}; }
  /// SDPA takes cuDNN before FlashAttention on Hopper; seen in 2.14, not in 2.8
  /// (ATen/native/transformers/cuda/sdp_utils.cpp).
  bool prefers_cudnn_attention() const { return v_.torch >= Version{2, 9, 0}; }
  /// from_pretrained shares layers among ranks by DTensor (distributed/tensor_parallel.py); looked at in 5.24 on torch
  /// 2.14.
  bool shards_layers() const { return layers_checkpoint_forward() && v_.torch >= Version{2, 9, 0}; }
  /// Experts are stacks of matrices that one kernel multiplies; looked at in 5.24 (integrations/moe.py). 4.57 runs them
  /// one by one; what lies between is taken to be like the newer from where layers checkpoint in their forward.
  bool fuses_experts() const { return layers_checkpoint_forward(); }
  /// Experts run one by one. transformers modeling_mixtral.py, modeling_qwen3_moe.py and others, until 4.57.
  bool loops_over_experts() const { return v_.transformers < Version{5, 0, 0}; }
  /// They are then lists of modules, but for GPT-OSS's (modeling_gpt_oss.py).
  bool lists_experts(Family family) const { return loops_over_experts() && family != Family::gpt_oss; }
  /// torch.nn.functional.grouped_mm is there, for compute capability 8.0 and newer. torch 2.10.
  bool groups_matrices() const { return v_.torch >= Version{2, 10, 0}; }
  /// PEFT takes old names of experts for their parameters, and folds updates into copies; looked at in 0.21
  /// (transformers_weight_conversion.py, lora/layer.py).
  bool adapts_expert_parameters() const { return v_.peft >= Version{0, 21, 0}; }
  /// masking_utils.py makes the masks. transformers 4.53.
  bool has_masking_utils() const { return v_.transformers >= Version{4, 53, 0}; }
  /// AttentionInterface: one class of attention for all kernels. transformers 4.48, of most families.
  bool has_attention_functions() const { return v_.transformers >= Version{4, 48, 0}; }
  /// Layers checkpoint themselves (GradientCheckpointingLayer), so FSDP1's wrapper stands outside of the region.
  /// transformers modeling_layers.py, 4.53.
  bool layers_checkpoint_themselves() const { return v_.transformers >= Version{4, 53, 0}; }

  /// A layer's forward checkpoints itself, so all hooks stand outside of the region; before, its __call__ did, hooks
  /// included. transformers modeling_layers.py, 5.23.
  bool layers_checkpoint_forward() const { return v_.transformers >= Version{5, 23, 0}; }

  /// The Trainer keeps the number of label tokens as a tensor, gathered from all ranks. transformers trainer.py, 4.50.
  bool counts_items_on_device() const { return v_.transformers >= Version{4, 50, 0}; }
  /// CUDA toolkit of PyTorch's wheels on PyPI: 12.1 in 2.4, 12.8 in 2.8, 13.0 in 2.14; the turns lie between.
  std::uint32_t cuda_toolkit() const {
    if (v_.torch < Version{2, 8, 0}) return 121;
    return v_.torch < Version{2, 11, 0} ? 128 : 130;
  }
  /// cuBLASLt works in the workspace of the cuBLAS handle, and that is large on every GPU since Hopper: so in
  /// torch 2.14, not in 2.8 (CublasHandlePool.cpp, CUDABlas.cpp).
  bool newer_cublas_workspaces() const { return v_.torch >= Version{2, 9, 0}; }
  /// The caching host allocator keeps a list of free blocks for each power of two: so in torch 2.8, in 2.4 one for all
  /// (ATen/core/CachingHostAllocator.h, get_free_block).
  PinnedReuse pinned_reuse() const {
    return v_.torch < Version{2, 6, 0} ? PinnedReuse::large_enough : PinnedReuse::same_size;
  }
  /// average_tokens_across_devices is on by default. transformers training_args.py, 4.54.
  bool averages_tokens() const { return v_.transformers >= Version{4, 54, 0}; }
  /// Norm weights are in the optimizer's group with weight decay. From 4.53 on names decide; before, the class of the
  /// norm, of which only Llama's was known. transformers trainer.py, 4.53.
  bool norms_decay(Family family) const { return v_.transformers < Version{4, 53, 0} && family != Family::llama; }
  /// The batch is held until the end of training_step ("del inputs" came later). transformers trainer.py, 4.41.
  bool keeps_inputs() const { return v_.transformers < Version{4, 41, 0}; }
  /// The Trainer reads sync_each_batch: in 5.24, not in 4.57, taken to hold for all of 5; and as long as it ran its
  /// micro steps under accelerate's accumulate(), until 4.45. transformers trainer.py.
  bool honours_sync_each_batch() const {
    return v_.transformers >= Version{5, 0, 0} || v_.transformers < Version{4, 46, 0};
  }
  /// Under FSDP's RAM-efficient loading a quantized weight goes to the host as soon as it is made. transformers
  /// modeling_utils.py, _load_state_dict_into_meta_model, until 4.57; in 5.24 every rank keeps the whole model on its
  /// GPU until it is cut (core_model_loading.py).
  bool takes_quantized_off_gpu() const { return v_.transformers < Version{5, 0, 0}; }
  /// longrope's frequencies for short batches stay on the host, where the first pass meets them. transformers
  /// modeling_phi3.py, _longrope_frequency_update: from 4.48.0, mended in 4.48.3.
  bool leaves_longrope_on_host() const {
    return v_.transformers >= Version{4, 48, 0} && v_.transformers < Version{4, 48, 3};
  }
  /// The loss that is added up is divided by the accumulation steps. transformers trainer.py, until 4.45.
  bool divides_reported_loss() const { return v_.transformers < Version{4, 46, 0}; }
  /// The norm of the gradients is worked out where nothing is clipped too, by clipping at infinity. transformers
  /// trainer.py, _get_grad_norm of 5.24 (4.57 does not).
  bool always_works_out_norm() const { return v_.transformers >= Version{5, 0, 0}; }
  /// The loss of evaluation is divided by a number of tokens, which is counted for it: so in transformers 4.57, in 4.48
  /// it is a mean (trainer.py, prediction_step).
  bool evaluation_counts_items() const { return counts_items_on_device() && v_.transformers >= Version{4, 57, 0}; }
  /// max_shard_size of save_pretrained: 5 GB, from 5.0 on 50 GB. transformers modeling_utils.py.
  std::uint64_t saved_file_bytes() const {
    return v_.transformers >= Version{5, 0, 0} ? 50'000'000'000 : 5'000'000'000;
  }
  /// Under ZeRO-3 save_model() gathers all to write adapters alone, whatever DeepSpeed's configuration says.
  /// transformers trainer.py, save_model: 5.0, not in 4.57.6.
  bool zero3_gathers_for_adapters() const { return v_.transformers >= Version{5, 0, 0}; }
  /// A FULL_STATE_DICT of adapters under FSDP2 is gathered; before, the first rank writes its parts of them.
  /// accelerate fsdp_utils.py, _get_model_state_dict: 1.15, not in 1.14.
  bool fsdp2_gathers_adapters() const { return v_.accelerate >= Version{1, 15, 0}; }
  /// Beside NCCL's group accelerate makes one for the CPU where FSDP offloads (state.py, PartialState: 1.8, not
  /// in 1.6).
  bool offload_adds_cpu_group() const { return v_.accelerate >= Version{1, 8, 0}; }
  /// The running sum of losses is added to in place. transformers trainer.py, 5.0.
  bool adds_loss_in_place() const { return v_.transformers >= Version{5, 0, 0}; }
  /// The loop over an epoch is a function of its own. transformers trainer.py, _run_epoch of 5.24 (not in 4.57).
  bool epoch_is_function() const { return v_.transformers >= Version{5, 0, 0}; }
  /// That number is divided once more, by what the ranks share, which makes it a float. transformers trainer.py, 5.0.
  bool item_count_is_float() const { return v_.transformers >= Version{5, 0, 0}; }

  /// NCCL collectives run on a stream of their own, on which they record their tensors; from 2.8 on they run on the
  /// stream that calls them. torch ProcessGroupNCCL.cpp (pytorch/pytorch 148590).
  bool collectives_have_own_stream() const { return v_.torch < Version{2, 8, 0}; }

  /// FSDP1 writes changed parameters back under NO_SHARD too: so in torch 2.14, not in 2.8 (_flat_param.py,
  /// pytorch/pytorch 154369).
  bool fsdp1_flattens_written_back() const { return v_.torch >= Version{2, 9, 0}; }
  /// FSDP1's clip_grad_norm_ keeps a zero for units without gradients: so in torch 2.8, not in 2.4
  /// (fully_sharded_data_parallel.py, _zero_scalar).
  bool fsdp1_keeps_zero_scalar() const { return v_.torch >= Version{2, 5, 0}; }
  /// FSDP1's clip_grad_norm_ takes gradients of one dtype only; seen in torch 2.8, not in 2.14
  /// (fully_sharded_data_parallel.py, _get_grad_norm).
  bool fsdp1_clips_one_dtype() const { return v_.torch < Version{2, 9, 0}; }

  /// ZeRO-3 gathers mixtures of experts as a whole, without being told. DeepSpeed 0.18 (deepspeedai/DeepSpeed 7604).
  bool zero3_finds_leaves() const { return v_.deepspeed >= Version{0, 18, 0}; }

  /// torch's fully_shard.
  Fsdp2Behaviour fully_shard() const;
  /// It is there, and accelerate can use it. torch 2.6, accelerate 1.6 (fsdp_version); 1.11 and 1.12 hand it
  /// ignored_params in any case, which is of torch 2.7 (fsdp_utils.py).
  bool has_fsdp2() const {
    const bool needs_ignored = v_.accelerate >= Version{1, 11, 0} && v_.accelerate < Version{1, 13, 0};
    return v_.torch >= (needs_ignored ? Version{2, 7, 0} : Version{2, 6, 0}) && v_.accelerate >= Version{1, 6, 0};
  }
  /// What accelerate's fsdp2_prepare_model does to parameters in 16 bit under mixed precision. fsdp_utils.py.
  Fsdp2Upcast fsdp2_upcast() const;
  /// While parameters are cut, the optimizer holds tensors of one element in their place; before, empty copies of them.
  /// accelerate accelerator.py, 1.9 (1.8 did not, 1.10 does).
  bool fsdp2_drops_optimizer_parameters() const { return v_.accelerate >= Version{1, 9, 0}; }
  /// Embedding and head are units of their own. accelerate fsdp_utils.py, 1.14 (huggingface/accelerate 4015).
  bool fsdp2_splits_root() const { return v_.accelerate >= Version{1, 14, 0}; }
  /// 4-bit weights stored as integers stay whole on every rank. accelerate fsdp_utils.py, 1.14
  /// (huggingface/accelerate 3987); needs ignored_params of torch 2.7.
  bool fsdp2_ignores_integer_storage() const {
    return v_.accelerate >= Version{1, 14, 0} && v_.torch >= Version{2, 7, 0};
  }
  /// ignored_modules become ignored_params. torch 2.7 (_fully_shard.py), accelerate 1.11 (fsdp_utils.py).
  bool fsdp2_has_ignored_params() const { return v_.torch >= Version{2, 7, 0} && v_.accelerate >= Version{1, 11, 0}; }
  /// A mesh of dp_replicate x dp_shard. accelerate 1.10 (parallelism_config.py).
  bool fsdp2_has_hybrid_mesh() const { return v_.accelerate >= Version{1, 10, 0}; }
  /// What is trained on a ParallelismConfig's mesh is saved by every rank, from parameters as they are cut.
  /// transformers 4.54 to 4.57 (trainer.py, save_model; gone in 5.0).
  bool saves_cut_parameters() const {
    return v_.transformers >= Version{4, 54, 0} && v_.transformers < Version{5, 0, 0};
  }
  /// A state dict is broadcast to all ranks; before, to the group of a mesh that may have one dimension only.
  /// accelerate 1.11 (fsdp_utils.py, fsdp2_load_full_state_dict).
  bool fsdp2_loads_in_hybrid_mesh() const { return v_.accelerate >= Version{1, 11, 0}; }
  /// What is loaded from rank 0 goes back to the host under offload. accelerate 1.13 (the same function).
  bool fsdp2_loads_offloaded() const { return v_.accelerate >= Version{1, 13, 0}; }
  /// A group may hold frozen parameters of another dtype than the trained ones. torch 2.8 (pytorch/pytorch 154103).
  bool fsdp2_mixes_frozen_dtypes() const { return v_.torch >= Version{2, 8, 0}; }
  /// A parameter that is shared by two groups is an error. torch 2.13 (_fsdp_state.py, _validate_no_duplicate_params).
  bool fsdp2_refuses_shared() const { return v_.torch >= Version{2, 13, 0}; }

 private:
  /// Where a family's modelling code makes rotary tables, and what it keeps of them. Mistral: tables as buffers until
  /// 4.41, made in every layer until 4.47. Llama: made in every layer until 4.42, beside such buffers, of no more use,
  /// until 4.40; modules in every layer, of no more use, until 4.47. modeling_mistral.py, modeling_llama.py of 4.39
  /// to 4.48.
  RotaryBehaviour rotary(Family family) const;
  /// A model upcasts its logits and averages the loss by itself: all before loss_function (4.46), Mistral until 4.47.
  bool model_makes_loss(Family family) const {
    return v_.transformers < (family == Family::mistral ? Version{4, 48, 0} : Version{4, 46, 0});
  }
  /// hidden_states[:, -num_logits_to_keep:, :] before the head: transformers 4.45, and torch before 2.9 makes slices of
  /// it.
  bool slices_hidden_states() const { return v_.transformers >= Version{4, 45, 0} && v_.torch < Version{2, 9, 0}; }
  /// A cache is made in training too: not from transformers 4.43 to 4.44 ("and not self.training"), nor from 5.0 on.
  bool fills_cache() const {
    const Version& t = v_.transformers;
    return t < Version{4, 43, 0} || (t >= Version{4, 45, 0} && t < Version{5, 0, 0});
  }

  StackVersions v_;
};

}  // namespace qlp
