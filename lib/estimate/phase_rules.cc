#include "estimate/phase_rules.h"

#include "base/refusal.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/model_options.h"
#include "plan/loading.h"

namespace qlp {
namespace {

/// FSDP brings the optimizer's state of all ranks together, which have to agree on what it is.
void check_gathered_states(const JobSpec& job, const ShardingPlan& plan, bool shards, const StackProfile& stack,
                           Diagnostics& refusals) {
  const OptimizerKind& kind = job.training.optimizer.kind;
  const auto refuse = [&](const char* code, const char* message, const char* hint) {
    refusals.push_back(refusal(code, message, "training.checkpoint", hint));
  };
  const auto* bnb = std::get_if<Bitsandbytes>(&kind);
  const bool torchao = std::holds_alternative<Torchao>(kind);
  if (const auto* fsdp1 = std::get_if<Fsdp1>(&plan)) {
    if (fsdp1->use_orig_params && bnb && stack.optimizers.bnb_wraps_states())
      refuse(
          "fsdp1-checkpoint-bitsandbytes",
          "torch compares what the ranks have of a parameter's state beside plain tensors (_convert_all_state_info), "
          "and bitsandbytes has all of it there, of another length on each: 'The size of tensor a must match the "
          "size of tensor b'",
          "take adamw_torch, or leave checkpoint out");
    else if (fsdp1->use_orig_params && torchao)
      refuse("fsdp1-checkpoint-torchao",
             "torch joins what a rank has of the states of a unit, which torchao's do not do: 'attempting to run "
             "unimplemented operator/function: aten.cat'",
             "take adamw_torch, or leave checkpoint out");
    else if (fsdp1->use_orig_params && bnb && bnb->optim_bits == 8)
      refuse("fsdp1-checkpoint-few-bits",
             "bitsandbytes keeps few bits or float32 by how much of a parameter a rank has, so that the states of the "
             "ranks differ in dtype, and what torch does there is not worked out",
             "take adamw_torch, or leave checkpoint out");
    else if (std::holds_alternative<StableAdamW>(kind))
      refuse("fsdp1-checkpoint-stable-adamw",
             "torch gathers a state of one number of StableAdamW as if ranks had parts of it: 'output tensor size must "
             "be equal to world_size times input tensor size'",
             "take adamw_torch, or leave checkpoint out");
    else if (bnb && bnb->is_paged && !stack.optimizers.bnb_wraps_states())
      refuse("fsdp1-checkpoint-paged", "what FSDP1 gathers of states in managed memory is not worked out",
             "take adamw_torch, or leave checkpoint out");
    else if (bnb && bnb->algorithm == Bitsandbytes::Algorithm::ademamix && !stack.optimizers.bnb_wraps_states())
      refuse("fsdp1-checkpoint-ademamix",
             "what FSDP1 does with the averages of AdEMAMix, two in one tensor, is not worked out",
             "take adamw_torch, or leave checkpoint out");
  }
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  if (fsdp2 && keeps_first_sums(job, *fsdp2))
    refuse("fsdp2-checkpoint-adagrad",
           "what torch gathers of sums for parameters that are no longer there is not worked "
           "out",
           "take rmsprop, or leave checkpoint out");
  if (fsdp2 && std::holds_alternative<GaLore>(kind))
    refuse(
        "fsdp2-checkpoint-galore",
        "what torch gathers of GaLore's states, which ranks share otherwise than their parameters, is not worked out",
        "take adamw_torch, or leave checkpoint out");
  if (fsdp2 && fsdp2->ignored_params != Fsdp2Ignored::adapter && torchao && !shards)
    refuse("fsdp2-checkpoint-torchao",
           "torchao keeps few bits or float32 by how much of a parameter a rank has, so that the states of the ranks "
           "differ in dtype, and what torch gathers of them is not worked out",
           "SHARDED_STATE_DICT, or take adamw_torch");
}

void check_checkpoint(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack, Diagnostics& refusals) {
  const auto refuse = [&](const char* code, const char* message, const char* hint) {
    refusals.push_back(refusal(code, message, "training.checkpoint", hint));
  };
  const bool shards = checkpoints_shards(job, plan);
  const auto* fsdp1 = std::get_if<Fsdp1>(&plan);
  const bool alone = job.cluster.world_size == 1;  // which FSDP1 turns into NO_SHARD
  if (fsdp1 && (fsdp1->sharding_strategy == ShardingStrategy::no_shard || alone))
    refuse("fsdp1-checkpoint-no-shard",
           "FSDP1 that does not shard saves whole state dicts whatever is asked for, and cannot offload them: "
           "'offload_to_cpu=True and NO_SHARD is not supported yet'",
           "plan ddp, or leave checkpoint out");
  if (job.cluster.mesh.tp > 1 || job.cluster.mesh.ep > 1)  // trainer.py, Trainer.__init__, 5.24
    refuse("mesh-checkpoint",
           "transformers saves no optimizer state of a model that it has cut while it loaded it: 'Resuming is not "
           "supported for models sharded at load time'",
           "leave checkpoint out");
  if (std::holds_alternative<Fsdp2>(plan) && job.adapter && !shards && !stack.fsdp2.gathers_adapters())
    refuse("fsdp2-checkpoint-adapter",
           "accelerate before 1.15 writes a FULL_STATE_DICT of adapters that holds the parts of the first rank alone",
           "SHARDED_STATE_DICT, or accelerate 1.15 or newer");
  check_gathered_states(job, plan, shards, stack, refusals);
}

/// What is sharded beside replicas or shared sequences has a mesh of accelerate's ParallelismConfig.
void check_mesh(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack, Diagnostics& refusals) {
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  if (!fsdp2 || !(fsdp2->hybrid || job.cluster.mesh.cp > 1) || !stack.trainer.saves_cut_parameters()) return;
  refusals.push_back(refusal(
      "mesh-save",
      job.adapter ? "transformers before 5 has PEFT write what is cut over a mesh, and PEFT stops at it: 'Attempted to "
                    "access the data pointer on an invalid python storage'"
                  : "transformers before 5 gathers what is cut over a mesh on every GPU, file by file, which is not "
                    "worked out",
      job.training.checkpoint ? "training.checkpoint" : "training.save",
      "take transformers 5, or leave save and checkpoint out"));
}

}  // namespace

Diagnostics check_phases(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack) {
  Diagnostics refusals;
  const TrainingSpec& training = job.training;
  if (training.evaluation && uses_liger(job))
    refusals.push_back(refusal("liger-evaluation", "evaluation with Liger's loss is not worked out yet",
                               "training.evaluation", "leave evaluation out, or set loss to plain"));
  if (training.checkpoint) check_checkpoint(job, plan, stack, refusals);
  if (training.checkpoint || training.saves_model) check_mesh(job, plan, stack, refusals);
  return refusals;
}

bool gathers_model(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack) {
  const auto* zero = std::get_if<Zero>(&plan);
  return !zero || zero->stage < 3 || zero->stage3_gather_16bit_weights_on_model_save ||
         (job.adapter && stack.trainer.zero3_gathers_for_adapters());
}

bool checkpoints_shards(const JobSpec& job, const ShardingPlan& plan) {
  const StateDictType type = job.training.checkpoint.value_or(StateDictType::full);
  if (std::holds_alternative<Fsdp2>(plan)) return type != StateDictType::full;
  return std::holds_alternative<Fsdp1>(plan) && type == StateDictType::sharded;
}

}  // namespace qlp
