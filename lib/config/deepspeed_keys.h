// Keys of DeepSpeed's JSON file that are no options of a plan: those that change no memory, and those that would, with
// why they are not planned (deepspeed/runtime/config.py, constants.py, zero/config.py of 0.18.3).
#pragma once

#include <array>
#include <string_view>

#include "config/map_reader.h"
#include "plan/zero.h"

namespace qlp {

/// At the root: what changes no memory, or what the job says in its own words.
inline constexpr std::array<std::string_view, 24> kDeepspeedSaidElsewhere{
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "steps_per_print",
    "wall_clock_breakdown",
    "memory_breakdown",
    "scheduler",
    "dump_state",
    "comms_logger",
    "flops_profiler",
    "tensorboard",
    "wandb",
    "csv_monitor",
    "comet",
    "autotuning",
    "checkpoint",
    "aio",                                   // of NVMe alone
    "activation_checkpointing",              // of deepspeed.checkpointing, which the Trainer never calls
    "elasticity",                            // sizes of batches and worlds, which the job gives
    "seq_parallel_communication_data_type",  // of sequence parallelism alone
    "timers",
    "dataloader_drop_last",
    "curriculum_learning",
    "zero_optimization"};

/// What the Trainer and accelerate fill in where it is "auto" (transformers integrations/deepspeed.py; accelerate
/// accelerator.py, _prepare_deepspeed, and utils/dataclasses.py, DeepSpeedPlugin).
inline constexpr std::array<std::string_view, 25> kFilledIn{
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "fp16.enabled",
    "bf16.enabled",
    "amp.enabled",
    "amp.opt_level",
    "optimizer.params.lr",
    "optimizer.params.betas",
    "optimizer.params.eps",
    "optimizer.params.weight_decay",
    "scheduler.params.warmup_min_lr",
    "scheduler.params.warmup_max_lr",
    "scheduler.params.warmup_num_steps",
    "scheduler.params.total_num_steps",
    "zero_optimization.stage",
    "zero_optimization.reduce_bucket_size",
    "zero_optimization.stage3_prefetch_bucket_size",
    "zero_optimization.stage3_param_persistence_threshold",
    "zero_optimization.stage3_gather_16bit_weights_on_model_save",
    "zero_optimization.offload_optimizer.device",
    "zero_optimization.offload_optimizer.nvme_path",
    "zero_optimization.offload_param.device",
    "zero_optimization.offload_param.nvme_path"};

/// In zero_optimization, and in each other section.
template <class Options>
inline constexpr std::array<std::string_view, 0> kWithoutMemory{};
template <>
inline constexpr std::array<std::string_view, 10> kWithoutMemory<ZeroOptimizerParams>{
    "lr",       "betas",     "eps",   "bias_correction", "set_grad_none",
    "nesterov", "dampening", "alpha", "lr_decay",        "initial_accumulator_value"};
template <>
inline constexpr std::array<std::string_view, 1> kWithoutMemory<ZeroTorchAutocast>{"lower_precision_safe_modules"};
template <>
inline constexpr std::array<std::string_view, 1> kWithoutMemory<ZeroBf16>{
    "immediate_grad_update"};  // of DeepSpeed's BF16_Optimizer alone
template <>
inline constexpr std::array<std::string_view, 1> kWithoutMemory<ZeroFp16>{"auto_cast"};
/// pipeline_read and pipeline_write are of NVMe alone.
template <>
inline constexpr std::array<std::string_view, 3> kWithoutMemory<ZeroOffloadOptimizer>{"fast_init", "pipeline_read",
                                                                                      "pipeline_write"};
template <>
inline constexpr std::array<std::string_view, 16> kWithoutMemory<Zero>{
    "ignore_unused_parameters",
    "round_robin_gradients",
    "load_from_fp32_weights",
    "elastic_checkpoint",
    "legacy_stage1",
    "override_module_apply",
    "log_trace_cache_warnings",
    "enable_sanity_checks",
    "pipeline_loading_checkpoint",
    "zeropp_loco_param",  // of ZeRO++'s quantized gradients alone
    "mics_hierarchical_params_gather",
    "allgather_partitions",
    "allgather_bucket_size",
    "use_multi_rank_bucket_allreduce",
    "stage",
    "leaf_module"};

/// Stage 3's, which the others do not read.
inline constexpr std::array<std::string_view, 16> kStage3Keys{"sub_group_size",
                                                              "stage3_max_live_parameters",
                                                              "stage3_max_reuse_distance",
                                                              "stage3_prefetch_bucket_size",
                                                              "stage3_param_persistence_threshold",
                                                              "stage3_model_persistence_threshold",
                                                              "stage3_module_granularity_threshold",
                                                              "stage3_gather_16bit_weights_on_model_save",
                                                              "stage3_gather_fp16_weights_on_model_save",
                                                              "stage3_use_all_reduce_for_fetch_params",
                                                              "zero_hpz_partition_size",
                                                              "zero_quantized_nontrainable_weights",
                                                              "zero_quantized_weights",
                                                              "zero_quantized_gradients",
                                                              "memory_efficient_linear",
                                                              "offload_param"};

/// Not planned at the root, unless they are off.
inline constexpr std::array<NotSupported, 7> kDeepspeedNotPlanned{{
    {"amp", "apex is not planned, nor does ZeRO run with it"},
    {"tensor_parallel", "DeepSpeed's tensor parallelism is not planned"},
    {"compile", "DeepCompile is not planned"},
    {"hybrid_engine", "the engine for generation in training is not planned"},
    {"sparse_attention", "DeepSpeed's own attention is not planned"},
    {"compression_training", "quantization and pruning in training are not planned"},
    {"progressive_layer_drop", "layers that are left out by chance are not planned"},
}};

/// Optimizers that DeepSpeed's file may name, in small letters (engine.py, _configure_basic_optimizer, 0.18.3).
inline constexpr std::array<NotSupported, 8> kOptimizersNotPlanned{{
    {"onebitadam", "1bit-Adam is not compatible with ZeRO"},
    {"zerooneadam", "0/1 Adam is not compatible with ZeRO"},
    {"onebitlamb", "1bit-Lamb is not compatible with ZeRO"},
    {"lamb", "FusedLamb is not planned"},
    {"muon", "what the compiled steps of DeepSpeed's Muon take is not worked out"},
    {"muadam", "optimizers of mup are not planned"},
    {"muadamw", "optimizers of mup are not planned"},
    {"musgd", "optimizers of mup are not planned"},
}};

/// Not planned in zero_optimization, and in each other section, unless they are off.
template <class Options>
inline constexpr std::array<NotSupported, 0> kNotPlanned{};
template <>
inline constexpr std::array<NotSupported, 4> kNotPlanned<ZeroOptimizerParams>{{
    {"amsgrad", "a third average is not planned, nor does DeepSpeed's FusedAdam keep it"},
    {"centered", "RMSprop's average of gradients is not planned"},
    {"foreach", "torch's own choice is planned"},
    {"fused", "torch's own choice is planned"},
}};
template <>
inline constexpr std::array<NotSupported, 7> kNotPlanned<Zero>{{
    {"mics_shard_size", "MiCS is not planned"},
    {"zenflow", "ZenFlow is not planned"},
    {"super_offload", "SuperOffload is not planned"},
    {"cpu_offload", "it is of old: offload_optimizer: {device: cpu} says it"},
    {"cpu_offload_param", "it is of old: offload_param: {device: cpu} says it"},
    {"cpu_offload_use_pin_memory", "it is of old: pin_memory in offload_optimizer says it"},
    {"fp16_master_weights_and_grads", "master weights in float32 are planned, DeepSpeed's default"},
}};

}  // namespace qlp
