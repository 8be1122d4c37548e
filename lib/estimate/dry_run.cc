#include "estimate/dry_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "autograd/engine.h"
#include "base/rounding.h"
#include "estimate/adapter_rules.h"
#include "estimate/attention_rules.h"
#include "estimate/eight_bit_rules.h"
#include "estimate/expert_rules.h"
#include "estimate/family_rules.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/loss_rules.h"
#include "estimate/model_options.h"
#include "estimate/optimizer_rules.h"
#include "estimate/parallel_rules.h"
#include "estimate/phase_rules.h"
#include "estimate/precision_rules.h"
#include "estimate/runtimes.h"
#include "model/target_matching.h"
#include "plan/stack_profile.h"
#include "quant/quantize.h"
#include "shard/sharding_runtime.h"
#include "step/attach_adapter.h"
#include "step/load.h"
#include "step/trainer.h"

namespace qlp {
namespace {

// CublasHandlePool.cpp, getChosenWorkspaceSize: 32 MiB on Hopper (later on all that came after it), else 8 MiB and 128
// KiB.
std::uint64_t cublas_workspace(std::uint32_t compute_capability, const StackProfile& stack) {
  const bool large = stack.torch.newer_cublas_workspaces() ? compute_capability >= 90 : compute_capability == 90;
  return large ? 33'554'432 : 8'519'680;
}

constexpr std::uint64_t kCublasLtWorkspace = 1 << 20;  // CUDABlas.cpp, _getWorkspaceSize: 1024 KiB

DeviceTraits traits_of(const GpuSpec& gpu, const StackProfile& stack) {
  DeviceTraits traits;
  traits.cublas_workspace_bytes = cublas_workspace(gpu.compute_capability, stack);
  traits.cublaslt_workspace_bytes = stack.torch.newer_cublas_workspaces() ? 0 : kCublasLtWorkspace;
  traits.compute_capability = gpu.compute_capability;
  traits.sm_count = gpu.sm_count;
  traits.cuda_toolkit = stack.torch.cuda_toolkit();
  traits.pinned_reuse = stack.torch.pinned_reuse();
  return traits;
}

constexpr std::int64_t kMostMicroSteps = 4;

EvaluationOptions evaluation_options(const JobSpec& job, std::int64_t ranks) {
  const EvaluationSpec& spec = *job.training.evaluation;
  constexpr std::int64_t kAlike = 3;  // without a number: batches leave nothing behind but their loss
  EvaluationOptions options;
  options.batch_size = spec.per_device_eval_batch_size;
  options.keeps_predictions = !spec.prediction_loss_only;
  // Ranks that share layers or sequences see the same samples.
  const std::int64_t readers = ranks / job.cluster.mesh.tp / job.cluster.mesh.cp;
  const std::int64_t all = ceil_div(ceil_div(spec.num_samples, readers), spec.per_device_eval_batch_size);
  options.batches = spec.num_samples == 0 ? kAlike : all;
  options.accumulation = spec.eval_accumulation_steps.value_or(0);
  options.group = {MeshAxis::world, ranks};
  return options;
}

TrainerOptions trainer_options(const JobSpec& job, std::int64_t ranks, const Machine& machine,
                               const StackProfile& stack) {
  const TrainingSpec& training = job.training;
  TrainerOptions options;
  options.world_size = job.cluster.world_size;
  options.micro_batch_size = training.micro_batch_size;
  options.seq_len = training.seq_len;
  options.sync_each_batch = training.sync_each_batch && stack.trainer.honours_sync_each_batch();
  // From the second micro step on each does what the one before did; the last one also reduces.
  options.gradient_accumulation_steps = machine.compute.kernels
                                            ? training.gradient_accumulation_steps
                                            : std::min(training.gradient_accumulation_steps, kMostMicroSteps);
  options.vocab_size = job.model.vocab_size;
  options.learning_rate = machine.learning_rate;
  options.max_grad_norm = training.max_grad_norm;
  options.num_steps = training.num_steps;
  options.optimizer = training.optimizer.kind;
  // The last step makes new projections, as every update_proj_gap-th does.
  if (LowRank* low_rank = low_rank_of(options.optimizer))
    low_rank->update_proj_gap = std::min(low_rank->update_proj_gap, std::max<std::int64_t>(training.num_steps - 1, 1));
  options.groups = {.optim_targets = training.optim_targets,
                    .name_prefix = std::string(wrapper_prefix(job.adapter.has_value())),
                    .norms_decay = stack.trainer.norms_decay(job.model.family),
                    .weight_decay = training.weight_decay};
  options.optimizer_behaviour = stack.optimizers.behaviour();
  options.item_count = !stack.trainer.counts_items_on_device() ? ItemCount::host_number
                       : stack.trainer.item_count_is_float()   ? ItemCount::device_float
                                                               : ItemCount::device_int64;
  options.averages_tokens = stack.trainer.averages_tokens();
  options.adds_loss_in_place = stack.trainer.adds_loss_in_place();
  options.epoch_is_function = stack.trainer.epoch_is_function();
  options.clips = training.max_grad_norm > 0 || stack.trainer.always_works_out_norm();
  options.autocast = training.mixed_precision();
  options.outputs_to_fp32 = training.mixed_precision();
  options.scales_loss = training.fp16;
  options.keeps_inputs = stack.trainer.keeps_inputs();
  options.divides_reported_loss = stack.trainer.divides_reported_loss();
  options.run.checkpointing = static_cast<Checkpointing>(training.gradient_checkpointing);
  options.run.input_requires_grad = job.adapter && training.gradient_checkpointing != GradientCheckpointing::none;
  options.run.behaviour = model_behaviour(job, stack);
  options.tensor_parallel.size = job.cluster.mesh.tp;
  options.expert_parallel.size = job.cluster.mesh.ep;
  options.context_parallel.size = job.cluster.mesh.cp;
  options.splits_on_device = stack.torch.splits_sequences_on_device();
  if (training.evaluation) options.evaluation = evaluation_options(job, ranks);
  options.evaluation_counts_items = stack.trainer.evaluation_counts_items();
  return options;
}

SaveOptions save_options(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank, const StackProfile& stack) {
  return {.adapter_only = job.adapter.has_value(),
          .writes = rank == 0,
          .file_bytes = stack.trainer.saved_file_bytes(),
          .gathers_model = gathers_model(job, plan, stack),
          .in_shards = checkpoints_shards(job, plan)};
}

FourBitFormat four_bit_format(const QuantizationSpec& spec) {
  return {.double_quant = spec.double_quant, .storage = spec.quant_storage, .nf4 = spec.quant_type == QuantType::nf4};
}

std::unique_ptr<WeightQuantizer> make_quantizer(const JobSpec& job, const StackProfile& stack) {
  if (!job.quantization) return nullptr;
  if (job.quantization->eight_bit()) return std::make_unique<EightBitQuantizer>();
  return std::make_unique<FourBitQuantizer>(four_bit_format(*job.quantization), stack.quant);
}

PipelineOptions pipeline_options(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank) {
  const ModelSlice slice = slice_of(job, rank);
  return {.stages = slice.stages,
          .stage = slice.stage,
          .microbatches = job.training.gradient_accumulation_steps,
          .hidden_size = job.model.hidden_size,
          .dtype = dtype_between_stages(job, plan),
          .stride = ranks_of_stage(job)};
}

LoadOptions load_options(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank, const StackProfile& stack) {
  const bool first_loads_for_all = loading_under(job, plan) == Loading::rank0 && loads_ram_efficiently(plan);
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  const bool in_shards = shards_at_load(job, plan);
  return {.dtype = job.dtype,
          .path = load_path(job, plan),
          .behaviour = stack.load,
          .world_size = job.cluster.world_size,
          .checkpoint_dtype = job.model.checkpoint_dtype.value_or(job.dtype),
          .keeps_on_host = !first_loads_for_all || rank % job.cluster.gpus_per_node == 0,
          .cut = in_shards ? RankShare{shard_ranks(job, *fsdp2), shard_place(job, *fsdp2, rank)} : RankShare{},
          .experts_cut = in_shards ? expert_share(job, *fsdp2, rank) : RankShare{},
          .capacity = job.cluster.gpu.capacity.count(),
          .mxfp4_experts = job.model.mxfp4_experts,
          .stacked_experts = job.model.stacked_experts,
          .eight_bit = job.quantization && job.quantization->eight_bit()};
}

void prepare_model(Context& ctx, CausalLm& model, const JobSpec& job, const StackProfile& stack) {
  if (job.quantization && job.quantization->prepare_kbit) prepare_for_kbit(ctx, model, stack.load);
  if (job.adapter) {
    const DType compute_dtype = job.quantization ? job.quantization->compute_dtype : job.dtype;
    attach_adapter(ctx, model, *job.adapter, compute_dtype, stack.load);
    if (job.quantization && job.quantization->trl_bf16_cast) cast_tables_back(ctx, model);
  }
  for (Parameter* parameter : model.parameters())
    if (parameter->trainable) set_requires_grad(parameter->tensor, true);
}

}  // namespace

Result<DryRun> dry_run(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank, RunExtent extent) {
  CounterSource source;
  return run_rank(job, plan, rank, extent, {.source = &source});
}

Result<DryRun> run_rank(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank, RunExtent extent,
                        const Machine& machine) {
  // One replica, whatever else is idle.
  if (std::holds_alternative<Single>(plan) && job.cluster.world_size > job.cluster.mesh.ranks_of_replica()) {
    JobSpec alone = job;
    alone.cluster.world_size = job.cluster.mesh.ranks_of_replica();
    return run_rank(alone, plan, rank, extent, machine);
  }
  const StackProfile stack(job.stack);
  auto runtime = make_runtime(job, plan, rank, stack);
  if (!runtime) return Unexpected{runtime.error()};
  if (auto refusals = check_family(job, stack); !refusals.empty()) return Unexpected{std::move(refusals)};
  if (auto refusals = check_attention(job, stack); !refusals.empty()) return Unexpected{std::move(refusals)};
  if (auto refusals = check_mesh(job, plan, stack); !refusals.empty()) return Unexpected{std::move(refusals)};
  if (auto refusals = check_experts(job, plan, stack); !refusals.empty()) return Unexpected{std::move(refusals)};
  if (auto refusals = check_eight_bit(job, plan); !refusals.empty()) return Unexpected{std::move(refusals)};
  if (auto refusals = check_loss(job, plan); !refusals.empty()) return Unexpected{std::move(refusals)};
  if (auto refusals = check_precision(job, plan, stack); !refusals.empty()) return Unexpected{std::move(refusals)};
  if (auto refusals = check_adapter(job, plan, stack); !refusals.empty()) return Unexpected{std::move(refusals)};
  if (auto refusals = check_optimizer(job, plan, stack); !refusals.empty()) return Unexpected{std::move(refusals)};
  if (auto refusals = check_phases(job, plan, stack); !refusals.empty()) return Unexpected{std::move(refusals)};
  BuildOptions building = build_options(job, rank, stack);
  building.even_routing = machine.even_routing;
  auto built = build_model(job.model, building);
  if (!built) return Unexpected{built.error()};
  if (auto refusals = runtime.value()->check(*built.value()); !refusals.empty()) return Unexpected{std::move(refusals)};

  DryRun run;
  CachingAllocator allocator(job.allocator, *machine.source, machine.events);
  Device device(allocator, run.timeline, traits_of(job.cluster.gpu, stack), machine.compute);
  Engine engine;
  Context ctx(device, engine);
  ctx.autocast.dtype = job.training.autocast_dtype();
  // Stages, and ranks that share layers, have the samples of their replica.
  const std::int64_t ranks = std::max(job.cluster.world_size, job.cluster.mesh.ranks_of_replica());
  const std::int64_t replica = place_in(job.cluster.mesh, ranks, rank).dp;
  ctx.random = {.seed = machine.seed, .replica = replica};
  {
    const std::unique_ptr<WeightQuantizer> quantizer = make_quantizer(job, stack);
    const std::unique_ptr<CausalLm> model = std::move(built.value());
    const std::unique_ptr<ShardingRuntime> sharding = std::move(runtime.value());
    model->visit([&](Module& module) { module.set_label(run.modules.intern(module.name())); });
    run.elements = count_elements(*model);
    const auto begin_phase = [&](const std::string& name) {
      run.timeline.begin_phase(name, allocator.stats());
      device.host().begin_phase(name);
      if (machine.on_phase) machine.on_phase(name);
    };
    begin_phase("load");
    const LoadOptions loading = load_options(job, plan, rank, stack);
    load(ctx, *model, loading, quantizer.get(), dynamic_cast<ParameterCutter*>(sharding.get()));
    begin_phase("adapter");
    {
      const bool on_gpu =
          loading.path == LoadPath::gpu || loading.path == LoadPath::in_parts || loading.path == LoadPath::sharded;
      const Scoped place(ctx.place, on_gpu ? Place::device : Place::host);
      prepare_model(ctx, *model, job, stack);
    }
    TrainerOptions training = trainer_options(job, job.cluster.world_size, machine, stack);
    training.pipeline = pipeline_options(job, plan, rank);
    training.save = save_options(job, plan, rank, stack);
    if (job.training.checkpoint) training.checkpoint_step = std::max<std::int64_t>(1, job.training.num_steps - 1);
    training.rank = replica / job.cluster.mesh.cp;  // those that share a sequence have one sample
    adjust_to_plan(training, job, plan, stack);
    Trainer trainer(*model, *sharding, training, begin_phase);
    trainer.prepare(ctx);
    if (extent == RunExtent::whole) trainer.train(ctx);
    run.managed_state = trainer.managed_state();
    run.steps = trainer.numbers();
    run.end = allocator.stats();
    run.last_event = run.timeline.event_count() - 1;
    if (machine.at_end) machine.at_end(ctx, *model, *sharding);
    if (extent == RunExtent::whole && job.training.evaluation) trainer.evaluate(ctx);
    if (extent == RunExtent::whole && job.training.saves_model) trainer.save(ctx);
    run.timeline.finish(allocator.stats());
    run.work = device.take_work();
    device.host().finish();
    run.host = device.host().phases();
    device.retire();
  }
  return run;
}

}  // namespace qlp
