#include "estimate/low_rank_rules.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "base/refusal.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/weight_list.h"
#include "model/target_matching.h"
#include "plan/loading.h"
#include "tensor/svd.h"

namespace qlp {
namespace {

constexpr std::string_view kKey = "training.optimizer";

/// What optim_target_modules names of linear layers; a tied head is one, though its weight goes by another name
/// (trainer_optimizer.py, _setup_low_rank_optimizer, 5.24; trainer.py, 4.57).
bool finds_optim_target(const JobSpec& job, const StackProfile& stack) {
  const std::string head = std::string(wrapper_prefix(job.adapter.has_value())) + "lm_head";
  if (is_optim_target(*job.training.optim_targets, head)) return true;
  return std::ranges::any_of(list_weights(job, stack.load), &ListedWeight::projected);
}

/// Where cuSOLVER counts the numbers of a workspace in more than 32 bits it refuses (CUSOLVER_STATUS_INVALID_VALUE).
bool finds_vectors(const JobSpec& job, const StackProfile& stack) {
  return std::ranges::all_of(list_weights(job, stack.load), [&](const ListedWeight& weight) {
    return !weight.projected || !weight.trained ||
           gesvdj_workspace(weight.rows, weight.width, stack.optimizers.behaviour().cusolver) <=
               std::numeric_limits<std::int32_t>::max();
  });
}

/// project_back() of reverse_std takes a square for what was projected from the left (galore_projector.py, 1.0).
bool confuses_sides(const JobSpec& job, const LowRank& how, const StackProfile& stack) {
  if (how.proj_type != ProjectionSide::reverse_std) return false;
  return std::ranges::any_of(list_weights(job, stack.load), [&](const ListedWeight& weight) {
    return weight.projected && weight.trained && weight.rows < weight.width && weight.rows <= how.rank;
  });
}

/// Factors by channel are as many as the projected gradient has along the longer side of the raw one, by which they
/// scale that (apollo.py, steps 3 and 4, 1.0).
bool finds_channels(const JobSpec& job, const Apollo& apollo, const StackProfile& stack) {
  if (apollo.scale_type == Apollo::Scale::tensor) return true;
  return std::ranges::all_of(list_weights(job, stack.load), [&](const ListedWeight& weight) {
    if (!weight.projected || !weight.trained) return true;
    const auto [left, right] = projected_sides(apollo.low_rank.proj_type, weight.rows, weight.width);
    const std::int64_t longer = std::max(weight.rows, weight.width), shorter = std::min(weight.rows, weight.width);
    const bool cut = weight.rows < weight.width ? right : left;
    const bool bounded = apollo.proj == Apollo::Projector::svd;
    const std::int64_t rank = bounded ? std::min(apollo.low_rank.rank, shorter) : apollo.low_rank.rank;
    return !cut || rank == longer || rank == 1;
  });
}

/// GaLore's matrices as DTensors: what is projected from the left is a sum over the ranks (torch 2.8 and 2.14).
void check_galore_rows(const JobSpec& job, const GaLore& galore, const Fsdp2& plan, const StackProfile& stack,
                       Diagnostics& refusals) {
  const auto refuse = [&](std::string message, std::string hint) {
    refusals.push_back(refusal("galore-sharded", std::move(message), std::string(kKey), std::move(hint)));
  };
  const std::int64_t ranks = shard_ranks(job, plan);
  const auto few = [&](const ListedWeight& weight) {
    return weight.projected && weight.trained && weight.rows < ranks;
  };
  if (job.cluster.mesh != Mesh{} || plan.ignored_params == Fsdp2Ignored::adapter || shards_at_load(job, plan))
    refuse("what GaLore does with these parts of parameters is not worked out yet",
           "take adamw_torch, or plan single, ddp or fsdp2");
  else if (galore.low_rank.proj_type == ProjectionSide::full && job.stack.torch < Version{2, 14, 0})
    refuse("what DTensor makes of GaLore's two products in a row is worked out from torch 2.14 on",
           "take another proj_type, or plan ddp");
  else if (std::ranges::any_of(list_weights(job, stack.load), few))
    refuse("what DTensor makes of GaLore's products of a matrix with fewer rows than ranks share it is not worked out",
           "name larger layers in training.optim_target_modules, or plan ddp");
}

/// Matrices that GaLore and APOLLO project, where ranks share them.
void check_projected(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack, Diagnostics& refusals) {
  const bool galore = std::holds_alternative<GaLore>(job.training.optimizer.kind);
  const std::string family = galore ? "GaLore" : "APOLLO";
  const auto refuse = [&](std::string message, std::string hint) {
    refusals.push_back(
        refusal(galore ? "galore-sharded" : "apollo-sharded", std::move(message), std::string(kKey), std::move(hint)));
  };
  const char* const elsewhere = "take adamw_torch, or plan single or ddp";
  const bool projects = std::ranges::any_of(
      list_weights(job, stack.load), [](const ListedWeight& weight) { return weight.projected && weight.trained; });
  const std::string flat = family + " projects matrices, and this plan hands it flat parts: 'tuple index out of range'";
  const auto* fsdp1 = std::get_if<Fsdp1>(&plan);
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  if (fsdp1 && job.training.optim_targets && !job.training.optim_targets->pattern.empty())
    refuse(
        "FSDP1 puts _fsdp_wrapped_module into the names that the regex of training.optim_target_modules is matched "
        "with as a whole, and which it finds then is not worked out",
        "name parts of the names in a list, or all-linear");
  else if (fsdp1 && job.cluster.mesh == Mesh{}) {
    // Without the original parameters none goes by the name of a weight, and nothing is projected.
    const bool shards = fsdp1->sharding_strategy != ShardingStrategy::no_shard && job.cluster.world_size > 1;
    const auto* kind = std::get_if<GaLore>(&job.training.optimizer.kind);
    if (fsdp1->use_orig_params && shards && projects)
      refuse(flat, "plan ddp, or take adamw_torch");
    else if (fsdp1->use_orig_params && projects && kind && kind->base == GaLore::Base::adamw_8bit)
      refuse(
          "GaLore in 8 bits puts new memory under each parameter, and what FSDP1 then does with the flat one that it "
          "was cut from is not worked out",
          elsewhere);
  } else if (std::holds_alternative<Zero>(plan) && projects) {
    refuse(flat, elsewhere);
  } else if (fsdp2 && galore) {
    check_galore_rows(job, std::get<GaLore>(job.training.optimizer.kind), *fsdp2, stack, refusals);
  } else if (fsdp2 && projects && fsdp2->ignored_params != Fsdp2Ignored::adapter && !shards_at_load(job, *fsdp2)) {
    refuse(
        "APOLLO numbers its parameters when it is made, and does not find those again that accelerate puts in their "
        "place for FSDP2: KeyError 'seed'",
        elsewhere);
  } else if ((!std::holds_alternative<Single>(plan) && !std::holds_alternative<Ddp>(plan)) ||
             job.cluster.mesh != Mesh{}) {
    refuse("what " + family + " does with parts of parameters is not worked out yet", elsewhere);
  }
}

/// An optimizer for each parameter, within the backward pass.
void check_layers(const TrainingSpec& training, bool single, const std::string& by_step, Diagnostics& refusals) {
  if (!steps_by_layers(training.optimizer.kind)) return;
  const std::string& name = training.optimizer.name;
  const auto refuse = [&](std::string code, std::string message, std::string hint) {
    refusals.push_back(refusal(std::move(code), std::move(message), std::string(kKey), std::move(hint)));
  };
  if (!single)
    refuse("layerwise-ddp", "the Trainer refuses it: 'Layer-wise " + name + " does not support DDP'",
           "take " + by_step + ", or plan single");
  if (training.gradient_accumulation_steps > 1)
    refuse("layerwise-accumulation",
           "the Trainer refuses it: 'Layerwise " + name + " does not support gradient accumulation'",
           "take " + by_step + ", or gradient_accumulation_steps: 1");
  if (training.fp16)
    refuse("layerwise-float16", "no gradient is left for torch's GradScaler: 'No inf checks were recorded'",
           "take " + by_step + ", or set mixed_precision to bf16");
}

}  // namespace

Diagnostics check_low_rank(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack) {
  Diagnostics refusals;
  const auto refuse = [&](std::string code, std::string message, std::string hint) {
    refusals.push_back(refusal(std::move(code), std::move(message), std::string(kKey), std::move(hint)));
  };
  const auto* galore = std::get_if<GaLore>(&job.training.optimizer.kind);
  const auto* apollo = std::get_if<Apollo>(&job.training.optimizer.kind);
  if (!galore && !apollo) return refusals;
  const std::string family = galore ? "galore" : "apollo";
  if (!job.training.optim_targets)
    refuse(family + "-targets", "the Trainer: 'You need to define `optim_target_modules`'",
           "give training.optim_target_modules");
  else if (!finds_optim_target(job, stack))
    refuse(family + "-no-target",
           "the Trainer: 'No target modules found for " + job.training.optimizer.name +
               "': training.optim_target_modules names no linear layer of this model",
           "name layers that it has, as q_proj, or all-linear");
  else if ((galore || apollo->proj == Apollo::Projector::svd) && !finds_vectors(job, stack))
    refuse(family + "-svd-size",
           "the workspace for the singular vectors of a weight that training.optim_target_modules names is more than "
           "cuSOLVER takes: 'CUSOLVER_STATUS_INVALID_VALUE'",
           "leave the largest layers out of training.optim_target_modules, as lm_head");
  else if (galore && confuses_sides(job, galore->low_rank, stack))
    refuse("galore-rank",
           "GaLore takes the update of a wide matrix for one from the other side where rank is its height or more: "
           "'mat1 and mat2 shapes cannot be multiplied'",
           "take a smaller rank, or proj_type: std");
  else if (apollo && !finds_channels(job, *apollo, stack))
    refuse("apollo-channels",
           "APOLLO scales gradients by channel, and this proj_type leaves a factor for each of the rank instead: "
           "'The size of tensor a must match the size of tensor b'",
           "take proj_type: std, or scale_type: tensor");
  check_layers(job.training, std::holds_alternative<Single>(plan), family + "_adamw", refusals);
  check_projected(job, plan, stack, refusals);
  return refusals;
}

}  // namespace qlp
