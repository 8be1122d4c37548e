#include "shard/fsdp2_units.h"

#include <algorithm>

#include "shard/state_dict.h"

namespace qlp {
namespace {

/// Modules below others come before them (get_module_children_bottom_up).
void add_wrapped(Module& module, const Fsdp2Preparation& preparation, std::vector<Fsdp2Unit>& units) {
  for (Module* child : module.children()) add_wrapped(*child, preparation, units);
  if (is_wrapped(module, preparation)) units.push_back({{&module}, preparation.reshard_after_forward});
}

}  // namespace

bool is_wrapped(const Module& module, const Fsdp2Preparation& preparation) {
  return std::ranges::find(preparation.wrapped, module.kind()) != preparation.wrapped.end();
}

std::vector<Fsdp2Unit> fsdp2_units(CausalLm& model, const Fsdp2Preparation& preparation,
                                   const Fsdp2Behaviour& behaviour) {
  const ReshardAfterForward& reshard = preparation.reshard_after_forward;
  CausalLmParts& parts = model.parts();
  std::vector<Fsdp2Unit> units;
  for (const auto& layer : parts.layers) add_wrapped(*layer, preparation, units);
  if (!preparation.splits_root) {
    units.push_back({{&model}, behaviour.root_obeys_reshard ? reshard : ReshardAfterForward{false}});
    return units;
  }
  std::vector<Module*> tail;  // some of them may be on other stages of a pipeline
  if (preparation.finds_final_norm && parts.norm) tail.push_back(parts.norm.get());
  if (tied_table(model))
    tail.push_back(parts.embedding.get());
  else if (parts.embedding)
    units.push_back({{parts.embedding.get()}, reshard});
  if (parts.head) tail.push_back(parts.head.get());
  if (!tail.empty()) units.push_back({std::move(tail), false});
  units.push_back({{&model}, false});
  return units;
}

std::vector<Fsdp2Unit> fsdp2_units_at_load(CausalLm& model, const ReshardAfterForward& of_layers) {
  CausalLmParts& parts = model.parts();
  std::vector<Fsdp2Unit> units;
  model.visit([&](Module& module) {
    if (module.kind() == ModuleKind::experts && module.own_parameters().front()->mesh == LayerMesh::ep)
      units.push_back({{&module}, true, true});
  });
  for (const auto& layer : parts.layers) units.push_back({{layer.get()}, of_layers});
  const bool tied = tied_table(model) != nullptr;
  if (!tied) units.push_back({{parts.embedding.get()}, true});
  Module* const table = tied ? static_cast<Module*>(parts.embedding.get()) : parts.head.get();
  units.push_back({{parts.norm.get(), table}, false});
  units.push_back({{&model}, false});
  return units;
}

}  // namespace qlp
