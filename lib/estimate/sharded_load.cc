#include "estimate/sharded_load.h"

#include <string>
#include <utility>

#include "base/refusal.h"
#include "plan/loading.h"

namespace qlp {
namespace {

/// fsdp_mixed_precision: true is this policy, false none.
bool known_policy(const Fsdp2MixedPrecision& policy) {
  const auto is = [](const std::optional<PolicyDType>& chosen, PolicyDType dtype) {
    return chosen.value_or(PolicyDType::none) == dtype;
  };
  const bool none = is(policy.param_dtype, PolicyDType::none) && is(policy.reduce_dtype, PolicyDType::none);
  const bool mixed = is(policy.param_dtype, PolicyDType::bfloat16) && is(policy.reduce_dtype, PolicyDType::float32);
  return (none || mixed) && is(policy.output_dtype, PolicyDType::none) && policy.cast_forward_inputs;
}

void check_options(const Fsdp2& plan, Diagnostics& refusals) {
  const auto refuse = [&](std::string code, std::string message, std::string hint) {
    refusals.push_back(refusal(std::move(code), std::move(message), "plans", std::move(hint)));
  };
  if (std::holds_alternative<std::int64_t>(plan.reshard_after_forward))
    refuse("tp-fsdp2-reshard", "transformers' plans know layers that are resharded after the forward pass or kept",
           "reshard_after_forward: true or false");
  if (plan.auto_wrap_policy != Fsdp2Wrap::transformer_based_wrap || plan.transformer_cls_names_to_wrap)
    refuse("tp-fsdp2-wrap", "transformers' plans make every decoder layer a unit",
           "leave auto_wrap_policy and transformer_cls_names_to_wrap out");
  if (plan.ignored_params != Fsdp2Ignored::none || plan.casts_to_float32)
    refuse("tp-fsdp2-ignored", "beside tensor parallelism transformers cuts every parameter, in the dtype of the model",
           "the plan fsdp2");
  if (!known_policy(plan.mp_policy))
    refuse("tp-fsdp2-policy",
           "transformers knows one policy, fsdp_mixed_precision: parameters in bfloat16, reduction in float32",
           "mp_policy: {param_dtype: bfloat16, reduce_dtype: float32}, or none");
  if (plan.cpu_offload)
    refuse(
        "tp-fsdp2-offload",  // seen with fsdp_cpu_offload
        "transformers reads the weights onto the GPU, and FSDP2 stops: parameters should be materialized on CPU when "
        "enabling CPU offloading",
        "cpu_offload: false");
}

void check_mesh_sizes(const JobSpec& job, const Fsdp2& plan, Diagnostics& refusals) {
  const std::int64_t tp = job.cluster.mesh.tp, ranks = shard_ranks(job, plan), data = job.cluster.world_size / tp;
  if (data == 1)
    refusals.push_back(refusal("tp-nothing-sharded", "all ranks share each layer: none are left to shard over",
                               "cluster.mesh.tp", "the plan single, or a smaller tp"));
  else if (data % ranks != 0 || (plan.hybrid && data == ranks))
    refusals.push_back(refusal("fsdp2-mesh",
                               "the " + std::to_string(data) +
                                   (tp > 1 ? " groups of ranks that share layers" : " ranks") +
                                   " are not two or more groups of " + std::to_string(ranks),
                               "plans.fsdp2-hsdp.dp_shard_size",
                               tp > 1 ? "a smaller factor of world_size / tp" : "a smaller factor of world_size"));
}

/// Adapters come after the model has been cut. PEFT 0.21 (lora/model.py, add_lora_tp_hooks_dtensor) shares those of a
/// layer that tensor parallelism cuts, and takes what is left of its rows for all that is left to a rank: seen to fail
/// with "shape is invalid for input of size". The Trainer of transformers 5.24 averages over the ranks what FSDP2 does
/// not know of (_sync_replicated_trainable_parameters), but passes over DTensors. accelerate cannot shard in the place
/// of transformers: "The parallel mesh requires 2 processes, but world_size is 4".
void check_adapter(const JobSpec& job, const Fsdp2& plan, Diagnostics& refusals) {
  const auto refuse = [&](std::string code, std::string message, std::string hint) {
    refusals.push_back(refusal(std::move(code), std::move(message), "adapter", std::move(hint)));
  };
  if (job.cluster.mesh.tp == 1)
    refuse("ep-fsdp2-adapter", "adapters beside experts that ranks share are planned without data parallelism only",
           "the plan single with ep as large as tp, or fsdp2 without ep");
  else if (shard_ranks(job, plan) == 1)
    refuse(
        "tp-replicated-adapter",
        "it would run and train wrongly: lora_B of a layer that ranks share is a DTensor, whose gradients the Trainer "
        "does not average over the replicas, so each replica trains an adapter of its own",
        "the plan single with tp alone, or fsdp2-hsdp without tp");
  else
    refuse("tp-fsdp2-adapter",
           "PEFT 0.21 takes the rows that FSDP2 leaves a rank for all that tensor parallelism leaves it: adapters fail "
           "in the first forward pass; and accelerate shards no model that transformers has cut",
           "the plan single with tp alone, or fsdp2 without tp");
}

}  // namespace

Result<Fsdp2Setup> setup_at_load(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack) {
  Diagnostics refusals;
  check_options(plan, refusals);
  check_mesh_sizes(job, plan, refusals);
  if (job.adapter) check_adapter(job, plan, refusals);
  if (loading_under(job, plan) != Loading::gpu)
    refusals.push_back(refusal("tp-fsdp2-loading", "each rank reads its part of the weights straight onto its GPU",
                               "model.loading", "gpu"));
  if (!refusals.empty()) return Unexpected{refusals};
  const std::int64_t ranks = shard_ranks(job, plan), tp = job.cluster.mesh.tp;
  Fsdp2Setup setup;
  setup.options = {.world_size = ranks,
                   .rank = shard_place(job, plan, rank),
                   .replicas = job.cluster.world_size / tp / ranks,
                   .stride = tp,
                   .precision = precision_of(job, plan),
                   .behaviour = stack.fsdp2.behaviour()};
  setup.preparation = {.cut_at_load = true,
                       .reshard_after_forward = plan.reshard_after_forward,
                       .forward_prefetch = plan.forward_prefetch,
                       .backward_prefetch = plan.backward_prefetch};
  if (job.cluster.mesh.ep > 1) {
    const RankShare share = expert_share(job, plan, rank);
    setup.of_experts = setup.options;
    setup.of_experts.world_size = share.ranks, setup.of_experts.rank = share.rank;
    setup.of_experts.stride = job.cluster.mesh.ep;
    setup.of_experts.batches = job.cluster.world_size / tp;  // transformers distributed/fsdp.py, 5.24
  }
  return setup;
}

}  // namespace qlp
