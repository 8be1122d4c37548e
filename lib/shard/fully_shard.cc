#include "shard/fully_shard.h"

#include <algorithm>
#include <utility>

#include "shard/sharding_runtime.h"
#include "tensor/factories.h"

namespace qlp {

void FullyShard::begin(Holders holders, const std::function<bool(const Parameter&)>& ignored) {
  holders_ = std::move(holders);
  for (const auto* held : {&holders_.state_dict, &holders_.variables})
    for (const Parameter* parameter : *held) {
      whole_[parameter] = parameter->tensor;
      if (ignored(*parameter)) ignored_.insert(parameter);
    }
}

std::vector<Parameter*> FullyShard::managed_parameters(const std::vector<Module*>& modules) const {
  std::vector<Parameter*> found;
  const auto add = [&](Parameter* parameter) {
    if (!ignored_.contains(parameter) && std::ranges::find(found, parameter) == found.end()) found.push_back(parameter);
  };
  const std::function<void(Module&)> search = [&](Module& module) {
    if (state_of_.contains(&module)) return;
    for (Module* child : module.children()) search(*child);
    for (const auto& parameter : module.own_parameters()) add(parameter.get());
    for (Parameter* parameter : module.shared_parameters()) add(parameter);
  };
  for (Module* module : modules) search(*module);
  return found;
}

void FullyShard::add(Context& ctx, const std::vector<Module*>& modules, const ReshardAfterForward& reshard) {
  const std::vector<Parameter*> managed = managed_parameters(modules);
  // _move_states_to_device: what is on the host goes to the GPU first, and from there once all of it is cut.
  const bool moves = ctx.place == Place::device;
  std::vector<Tensor> whole;
  for (Parameter* parameter : managed) {
    Tensor& held = whole_.at(parameter);
    whole.push_back(moves ? to_device(ctx, held) : held);
    if (std::ranges::find(holders_.variables, parameter) != holders_.variables.end()) held = whole.back();
    if (keeps_whole_ && parameter->trainable) kept_.push_back(whole.back());
  }
  if (moves)
    for (Module* module : modules) move_buffers(ctx, *module);
  std::vector<Fsdp2Param> params;
  for (std::size_t i = 0; i < managed.size(); ++i) {
    Parameter* parameter = managed[i];
    if (Fsdp2Param* earlier = shard_of(*parameter)) earlier->disown();
    params.emplace_back(ctx, *parameter, whole[i], shared_.options);
  }
  add_state(modules, std::move(params), reshard, shared_.options);
}

void FullyShard::adopt(Context& ctx, const std::vector<Module*>& modules, const ReshardAfterForward& reshard,
                       bool experts) {
  const Fsdp2Options& options = experts ? shared_.of_experts : shared_.options;
  std::vector<Fsdp2Param> params;
  for (Parameter* parameter : managed_parameters(modules))
    if (!shard_of(*parameter)) params.emplace_back(ctx, *parameter, options);
  add_state(modules, std::move(params), reshard, options);
}

void FullyShard::pad_shards(Context& ctx) {
  for (const auto& state : states_)
    if (Fsdp2Group* group = state->group())
      for (Fsdp2Param& param : group->params()) param.reset_shard(ctx);
}

void FullyShard::add_state(const std::vector<Module*>& modules, std::vector<Fsdp2Param> params,
                           const ReshardAfterForward& reshard, const Fsdp2Options& options) {
  std::unique_ptr<Fsdp2Group> group;
  if (!params.empty()) group = std::make_unique<Fsdp2Group>(std::move(params), reshard, options, shared_.comm);
  if (group)
    for (Fsdp2Param& param : group->params()) shard_of_[&param.parameter()] = &param;
  states_.push_back(std::make_unique<Fsdp2State>(shared_, modules, std::move(group)));
  for (Module* module : modules) state_of_[module] = states_.back().get();
}

void FullyShard::end(Module& root) {
  for (const auto* held : {&holders_.state_dict, &holders_.variables})
    for (const Parameter* parameter : *held) whole_.erase(parameter);
  holders_ = {};
  root.visit([&](Module& module) {
    const auto found = state_of_.find(&module);
    if (found == state_of_.end()) return;
    if (&module != &root) module.set_hooks(found->second);
    auto& states = shared_.states;
    if (std::find(states.begin(), states.end(), found->second) == states.end()) states.push_back(found->second);
  });
}

void FullyShard::reshard(Context& ctx) {
  for (const auto& state : states_)
    if (Fsdp2Group* group = state->group()) group->reshard(ctx);
}

Fsdp2Param* FullyShard::shard_of(const Parameter& parameter) const {
  const auto found = shard_of_.find(&parameter);
  return found == shard_of_.end() ? nullptr : found->second;
}

Fsdp2State* FullyShard::state_of(const Module& module) const {
  const auto found = state_of_.find(&module);
  return found == state_of_.end() ? nullptr : found->second;
}

Fsdp2Group* FullyShard::group_of(const Module& module) const {
  Fsdp2State* state = state_of(module);
  return state ? state->group() : nullptr;
}

void FullyShard::set_reduces(bool reduces) {
  for (const auto& state : states_)
    if (state->group()) state->group()->set_reduces(reduces);
}

void FullyShard::begin_stage_backward() {
  shared_.is_last_backward = false;
  set_reduces(false);
  for (const auto& state : states_)
    if (state->group()) state->group()->set_reshards_after_backward(false);
}

void FullyShard::end_stage_passes(Context& ctx) {
  shared_.is_last_backward = true;
  set_reduces(true);
  for (Fsdp2State* state : shared_.states) {
    if (!state->group()) continue;
    state->group()->set_reshards_after_backward(true);
    state->group()->post_backward(ctx);
  }
  Fsdp2State::end_backward(ctx, shared_);
}

}  // namespace qlp
