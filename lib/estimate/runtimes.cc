#include "estimate/runtimes.h"

#include <type_traits>
#include <utility>

#include "estimate/fsdp1_plan.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/zero3_plan.h"
#include "estimate/zero_plan.h"
#include "plan/loading.h"
#include "shard/ddp.h"
#include "shard/fsdp1.h"
#include "shard/fsdp2_runtime.h"
#include "shard/tensor_parallel.h"
#include "shard/zero.h"
#include "shard/zero3.h"
#include "shard/zero_unfused.h"

namespace qlp {
namespace {

using Made = Result<std::unique_ptr<ShardingRuntime>>;

Made single(const JobSpec& job) {
  if (job.cluster.mesh.tp > 1) return std::unique_ptr<ShardingRuntime>(std::make_unique<TensorParallelRuntime>());
  return std::make_unique<ShardingRuntime>();
}

Made ddp(const JobSpec& job, const Ddp& plan, const StackProfile& stack) {
  const ReducerOptions options{.world_size = job.cluster.world_size / job.cluster.mesh.pp,
                               .bucket_cap_mb = plan.bucket_cap_mb,
                               .gradient_as_bucket_view = plan.gradient_as_bucket_view,
                               .replaced = stack.torch.collectives_have_own_stream() ? ReplacedBuckets::recorded
                                           : job.cluster.mesh.pp > 1                 ? ReplacedBuckets::dropped
                                                                                     : ReplacedBuckets::held};
  return std::unique_ptr<ShardingRuntime>(std::make_unique<DdpRuntime>(options));
}

Made fsdp1(const JobSpec& job, const Fsdp1& plan, std::int64_t rank, const StackProfile& stack) {
  auto options = fsdp1_options(job, plan, rank, stack);
  if (!options) return Unexpected{options.error()};
  const bool by_layer = job.training.gradient_checkpointing == GradientCheckpointing::reentrant;
  return std::unique_ptr<ShardingRuntime>(std::make_unique<Fsdp1Runtime>(*options, by_layer));
}

Made fsdp2(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack) {
  const auto setup = fsdp2_setup(job, plan, rank, stack);
  if (!setup) return Unexpected{setup.error()};
  auto runtime = std::make_unique<Fsdp2Runtime>(setup->options, setup->preparation, setup->of_experts);
  if (setup->keeps_first_sums) runtime->keep_whole();
  return std::unique_ptr<ShardingRuntime>(std::move(runtime));
}

Made zero(const JobSpec& job, const Zero& plan, std::int64_t rank, const StackProfile& stack) {
  if (plan.stage == 3) {
    const auto options = zero3_options(job, plan, rank, stack);
    if (!options) return Unexpected{options.error()};
    return std::unique_ptr<ShardingRuntime>(std::make_unique<Zero3Runtime>(*options));
  }
  const auto options = zero_options(job, plan, rank, stack);
  if (!options) return Unexpected{options.error()};
  if (zero_takes_unfused_optimizer(job.training, plan))
    return std::unique_ptr<ShardingRuntime>(std::make_unique<ZeroUnfusedRuntime>(*options));
  return std::unique_ptr<ShardingRuntime>(std::make_unique<ZeroRuntime>(*options));
}

}  // namespace

Result<std::unique_ptr<ShardingRuntime>> make_runtime(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank,
                                                      const StackProfile& stack) {
  return std::visit(
      [&](const auto& chosen) -> Made {
        using Plan = std::decay_t<decltype(chosen)>;
        if constexpr (std::is_same_v<Plan, Single>) return single(job);
        if constexpr (std::is_same_v<Plan, Ddp>) return ddp(job, chosen, stack);
        if constexpr (std::is_same_v<Plan, Fsdp1>) return fsdp1(job, chosen, rank, stack);
        if constexpr (std::is_same_v<Plan, Fsdp2>) return fsdp2(job, chosen, rank, stack);
        if constexpr (std::is_same_v<Plan, Zero>) return zero(job, chosen, rank, stack);
      },
      plan);
}

AdagradStart adagrad_start(const JobSpec& job, const ShardingPlan& plan) {
  if (const auto* zero = std::get_if<Zero>(&plan)) return zero_adagrad_start(*zero);
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  return fsdp2 && keeps_first_sums(job, *fsdp2) ? AdagradStart::in_step : AdagradStart::moved;
}

void adjust_to_plan(TrainerOptions& options, const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack) {
  // accelerate's prepare_model installs autocast and the conversion; _prepare_fsdp2 does neither (accelerator.py).
  if (std::holds_alternative<Fsdp2>(plan) && !shards_at_load(job, plan))
    options.autocast = options.outputs_to_fp32 = false;
  options.makes_optimizer_first = std::holds_alternative<Ddp>(plan);
  options.adagrad_start = adagrad_start(job, plan);
  if (const auto* fsdp2 = std::get_if<Fsdp2>(&plan)) options.keeps_first_sums = keeps_first_sums(job, *fsdp2);
  if (std::holds_alternative<Fsdp1>(plan)) options.outputs_to_fp32 = false;  // converted within its root
  if (const auto* zero = std::get_if<Zero>(&plan)) {
    // DeepSpeed's engine casts the module instead, and scales the loss by a Python number.
    options.autocast = options.outputs_to_fp32 = options.scales_loss = false;
    options.optimizer = zero_optimizer_kind(options.optimizer, *zero);
    options.groups.one_group = zero_has_own_optimizer(*zero);
    if (options.groups.one_group) options.groups.optim_targets.reset();
    options.groups.weight_decay = zero_weight_decay(job.training, *zero);
    options.keeps_first_sums = std::holds_alternative<Adagrad>(options.optimizer) && !options.groups.one_group &&
                               options.adagrad_start == AdagradStart::unmoved;
  }
  const bool cuts = std::holds_alternative<Fsdp1>(plan) || std::holds_alternative<Fsdp2>(plan);
  const Mesh& mesh = job.cluster.mesh;
  if (cuts || mesh.tp > 1 || mesh.pp > 1) options.gradient_parts = {MeshAxis::world, job.cluster.world_size};
  options.run.hooks_outside_checkpoint =
      stack.models.layers_checkpoint_forward() ||
      (std::holds_alternative<Fsdp1>(plan) && stack.models.layers_checkpoint_themselves());
}

}  // namespace qlp
