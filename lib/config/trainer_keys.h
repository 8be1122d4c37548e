// Keys of transformers' TrainingArguments, which the files of TRL, LLaMA-Factory and (in part) axolotl hold.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "config/foreign_file.h"
#include "plan/sharding_plan.h"

namespace qlp {

/// What optimizers that project weights take, where the file's `optimizer` key names one; of others it changes nothing.
void read_low_rank_keys(ForeignFile& file, std::string_view optimizer);

/// per_device_train_batch_size, gradient_accumulation_steps, optim, max_grad_norm, tf32, evaluation.
void read_trainer_keys(ForeignFile& file);

/// `fsdp` and `fsdp_config`, or `deepspeed`. `fsdp1`: a file that names no version means FSDP1. What it says of the
/// storage of weights must have been read.
void read_trainer_parallelism(ForeignFile& file, bool fsdp1);
/// FSDP1 before transformers 5.10 (training_args.py).
bool trainer_defaults_to_fsdp1(const StackVersions& stack);

/// The plan under which the job will run, where a file of accelerate or DeepSpeed gives it.
std::optional<ShardingPlan> launched_plan(ForeignFile& file);
bool is_zero3(const std::optional<ShardingPlan>& plan);
bool is_fsdp2(const std::optional<ShardingPlan>& plan);

/// Reentrant or not; `key` says it, or stands where it is a default.
void say_checkpointing(ForeignFile& file, std::string_view key, bool reentrant);

/// Keys of TrainingArguments that change no memory of a GPU, or none that is planned.
std::span<const std::string_view> trainer_keys_without_memory();

}  // namespace qlp
