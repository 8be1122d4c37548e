#include "estimate/shard_map.h"

#include <utility>

#include "estimate/expert_rules.h"
#include "estimate/fsdp1_plan.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/model_options.h"
#include "estimate/parallel_rules.h"
#include "estimate/runtimes.h"
#include "estimate/weight_list.h"
#include "estimate/zero3_plan.h"
#include "model/target_matching.h"
#include "plan/placement.h"
#include "shard/fsdp1_wrap.h"
#include "shard/fsdp2_units.h"

namespace qlp {
namespace {

/// Names as PEFT's wrapper has them (peft/peft_model.py, tuners/lora, utils/other.py): everything is below
/// base_model.model, what a wrapped layer had is in its base_layer, what a copied module had in its original_module.
class PeftNames {
 public:
  explicit PeftNames(const JobSpec& job) : job_(job) {}

  std::string module(const std::string& name) const {
    if (name.empty()) return "";
    return std::string(wrapper_prefix(job_.adapter.has_value())) + name;
  }
  std::string parameter(const Parameter& parameter) const {
    if (!job_.adapter) return parameter.name;
    const std::size_t dot = parameter.name.rfind('.');
    std::string owner = parameter.name.substr(0, dot);
    const bool original = parameter.role == ParamRole::embedding || parameter.role == ParamRole::lm_head ||
                          parameter.role == ParamRole::norm;
    if (original && is_saved_module(*job_.adapter, owner)) owner += ".original_module";
    if (parameter.role == ParamRole::lm_head && is_target(*job_.adapter, "lm_head", true)) owner += ".base_layer";
    return module(owner) + parameter.name.substr(dot);
  }

 private:
  const JobSpec& job_;
};

bool is_true(const ReshardAfterForward& reshard) {
  const bool* flag = std::get_if<bool>(&reshard);
  return flag == nullptr || *flag;
}

std::vector<WrapUnit> units_of(const JobSpec& job, const ShardingPlan& plan, CausalLm& model,
                               const StackProfile& stack) {
  const PeftNames names(job);
  std::vector<WrapUnit> out;
  if (const auto* fsdp1 = std::get_if<Fsdp1>(&plan)) {
    const auto options = fsdp1_options(job, *fsdp1, 0, stack);
    const auto wrapped = modules_to_wrap(model, *options);
    const bool reshards = reshards_after_forward(fsdp1->sharding_strategy);
    model.visit([&](const Module& module) {
      if (wrapped.contains(&module)) out.push_back({{names.module(module.name())}, reshards});
    });
    out.push_back({{""}, reshards});
  }
  if (const auto* fsdp2 = std::get_if<Fsdp2>(&plan)) {
    const auto setup = fsdp2_setup(job, *fsdp2, 0, stack);
    const Fsdp2Preparation& preparation = setup->preparation;
    for (const Fsdp2Unit& unit : preparation.cut_at_load ? fsdp2_units_at_load(model, preparation.reshard_after_forward)
                                                         : fsdp2_units(model, preparation, setup->options.behaviour)) {
      WrapUnit& named = out.emplace_back();
      named.reshard_after_forward = is_true(unit.reshard_after_forward);
      for (const Module* module : unit.modules) named.modules.push_back(names.module(module->name()));
    }
  }
  return out;
}

/// Parameters up to this size stay whole under ZeRO-3.
std::int64_t persistent_elements(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack) {
  const auto* zero = std::get_if<Zero>(&plan);
  if (!zero || zero->stage != 3) return 0;
  return zero3_options(job, *zero, 0, stack)->param_persistence_threshold;
}

Placement placement_of(const ShardingPlan& plan, const WeightTraits& traits, bool persists) {
  if (is_sharded(plan, traits)) return persists ? Placement::replicated : Placement::sharded;
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  return fsdp2 && is_ignored(fsdp2->ignored_params, traits.trained, traits.packed) ? Placement::ignored
                                                                                   : Placement::replicated;
}

/// The dimensions of the mesh in the order of accelerate's (parallelism_config.py, mesh_dim_names) and transformers'
/// (distributed/utils.py, initialize_distributed_mesh); fully_shard cuts the first dimension of a tensor.
std::vector<AxisPlacement> axes_of(const JobSpec& job, const ShardingPlan& plan, const Parameter& parameter,
                                   bool is_sharded) {
  const Mesh& mesh = job.cluster.mesh;
  std::vector<AxisPlacement> axes;
  const auto add = [&](const char* axis, std::int64_t ranks, std::optional<int> dim) {
    if (ranks > 1) axes.push_back({axis, dim});
  };
  const std::optional<int> rows = is_sharded ? std::optional(0) : std::nullopt;
  if (const auto* fsdp2 = std::get_if<Fsdp2>(&plan)) {
    const std::int64_t shards = shard_ranks(job, *fsdp2);
    add("dp_replicate", job.cluster.world_size / mesh.tp / mesh.pp / shards, std::nullopt);
    if (parameter.mesh == LayerMesh::ep) {
      add("efsdp", expert_share(job, *fsdp2, 0).ranks, rows);
      add("ep", mesh.ep, 0);
      return axes;
    }
    add("dp_shard", shards / mesh.cp, rows);  // which ranks that share a sequence take part in
    add("cp", mesh.cp, rows);
  }
  if (parameter.mesh == LayerMesh::ep)
    add("ep", mesh.ep, 0);
  else
    add("tp", mesh.tp, parameter.parts > 1 ? std::optional(parameter.cut_dim) : std::nullopt);
  return axes;
}

/// What each stage has, in turn: one list of all weights, in the order of named_parameters().
class Mapper {
 public:
  Mapper(const JobSpec& job, const NamedPlan& plan, const StackProfile& stack)
      : job_(job),
        plan_(plan),
        stack_(stack),
        weights_(list_weights(job, stack.load)),
        persistent_(persistent_elements(job, plan.plan, stack)) {}

  std::optional<Diagnostics> add_stage(std::int64_t stage) {
    const std::int64_t rank = stage * ranks_of_stage(job_);
    auto built = build_model(job_.model, build_options(job_, rank, stack_));
    if (!built) return built.error();
    CausalLm& model = **built;
    if (stage == 0) {
      const auto runtime = make_runtime(job_, plan_.plan, 0, stack_);
      if (!runtime) return runtime.error();
      if (auto refusals = runtime.value()->check(model); !refusals.empty()) return refusals;
    }
    for (WrapUnit& unit : units_of(job_, plan_.plan, model, stack_)) {
      const bool root = unit.modules == std::vector<std::string>{""};
      if (!root || stage == job_.cluster.mesh.pp - 1) map_.units.push_back(std::move(unit));  // last, of every stage
    }
    for (const Parameter* parameter : model.parameters()) add(*parameter, stage);
    return std::nullopt;
  }
  ShardMap take() { return std::move(map_); }

 private:
  void add(const Parameter& parameter, std::int64_t stage) {
    const ListedWeight& weight = weights_.at(next_++);
    const bool packed = weight.kind == WeightKind::packed;
    MappedParameter& mapped = map_.parameters.emplace_back();
    mapped.name = PeftNames(job_).parameter(parameter);
    mapped.role = parameter.role, mapped.dtype = weight.dtype, mapped.elements = weight.elements;
    mapped.trainable = weight.trained, mapped.quantized = packed, mapped.stage = stage;
    mapped.placement =
        placement_of(plan_.plan, {.trained = weight.trained, .packed = packed}, weight.stored() <= persistent_);
    if (job_.cluster.mesh != Mesh{})
      mapped.axes = axes_of(job_, plan_.plan, parameter, mapped.placement == Placement::sharded);
  }

  const JobSpec& job_;
  const NamedPlan& plan_;
  const StackProfile& stack_;
  Weights weights_;
  std::int64_t persistent_;
  std::size_t next_ = 0;
  ShardMap map_;
};

}  // namespace

Result<ShardMap> shard_map(const JobSpec& job, const NamedPlan& plan) {
  const StackProfile stack(job.stack);
  for (auto refusals : {check_mesh(job, plan.plan, stack), check_experts(job, plan.plan, stack)})
    if (!refusals.empty()) return Unexpected{std::move(refusals)};
  // What the plan refuses, it refuses before anything is listed.
  if (const auto runtime = make_runtime(job, plan.plan, 0, stack); !runtime) return Unexpected{runtime.error()};
  Mapper mapper(job, plan, stack);
  for (std::int64_t stage = 0; stage < job.cluster.mesh.pp; ++stage)
    if (auto refusals = mapper.add_stage(stage)) return Unexpected{*std::move(refusals)};
  return mapper.take();
}

}  // namespace qlp
