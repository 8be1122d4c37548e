#include "estimate/shard_map.h"

#include <memory>

#include "base/refusal.h"
#include "estimate/fsdp1_plan.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/model_options.h"
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
    if (!job_.adapter) return name;
    if (name.empty()) return "";
    return "base_model.model." + name;
  }
  std::string parameter(const Parameter& parameter) const {
    if (!job_.adapter) return parameter.name;
    const std::size_t dot = parameter.name.rfind('.');
    std::string owner = parameter.name.substr(0, dot);
    const bool original = parameter.role == ParamRole::embedding || parameter.role == ParamRole::lm_head;
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
    for (const Fsdp2Unit& unit : fsdp2_units(model, setup->preparation, setup->options.behaviour)) {
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

}  // namespace

Result<ShardMap> shard_map(const JobSpec& job, const NamedPlan& plan) {
  if (job.cluster.mesh != Mesh{})
    return Unexpected{Diagnostics{refusal("not-supported", "the map of a model that a mesh cuts is not worked out yet",
                                          "cluster.mesh", "leave the mesh out")}};
  const StackProfile stack(job.stack);
  const auto runtime = make_runtime(job, plan.plan, 0, stack);
  if (!runtime) return Unexpected{runtime.error()};
  auto built = build_model(job.model, build_options(job, 0, stack));
  if (!built) return Unexpected{built.error()};
  CausalLm& model = **built;
  if (auto refusals = runtime.value()->check(model); !refusals.empty()) return Unexpected{std::move(refusals)};

  ShardMap map;
  map.units = units_of(job, plan.plan, model, stack);
  const auto weights = list_weights(job, stack.load());  // in the order of named_parameters() too
  const PeftNames names(job);
  const std::int64_t persistent = persistent_elements(job, plan.plan, stack);
  std::size_t i = 0;
  for (const Parameter* parameter : model.parameters()) {
    const ListedWeight& weight = weights.at(i++);
    map.parameters.push_back(
        {.name = names.parameter(*parameter),
         .role = parameter->role,
         .dtype = weight.dtype,
         .elements = weight.elements,
         .trainable = weight.trained,
         .quantized = weight.kind == WeightKind::packed,
         .placement = placement_of(plan.plan, {.trained = weight.trained, .packed = weight.kind == WeightKind::packed},
                                   weight.stored() <= persistent)});
  }
  return map;
}

}  // namespace qlp
