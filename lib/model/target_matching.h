// Which modules and parameters get an adapter (peft/tuners/tuners_utils.py, check_target_module_exists; 0.13 to 0.21).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/adapter_spec.h"
#include "model/family_design.h"

namespace qlp {

/// What the names of all modules begin with once PEFT has wrapped the model (peft/peft_model.py).
constexpr std::string_view wrapper_prefix(bool adapted) { return adapted ? "base_model.model." : ""; }

/// Why a text is no regular expression that can be matched here; none if it is. RE2 takes linear time, and in return
/// has no look-around and no back references.
std::optional<std::string> error_in_pattern(const std::string& pattern);

/// True if the pattern matches the whole name; one that is none matches nothing.
bool matches_pattern(const std::string& pattern, std::string_view name);

/// True if the module of this full name is adapted, were it a linear layer or an embedding. `all-linear` is every
/// linear layer but the head; a list matches whole names or their last parts (all-linear in it those of all such
/// layers), on the chosen layers only; one text is a regular expression on the full name. What is excluded, or trained
/// as a copy, is not.
bool is_target(const AdapterSpec& adapter, std::string_view name, bool is_head);
/// The same for the embedding, which `all-linear` leaves out.
bool adapts_embedding(const AdapterSpec& adapter);

/// True if the module of this full name is trained as a copy (modules_to_save): it ends with one of the names.
bool is_saved_module(const AdapterSpec& adapter, std::string_view name);

/// The rank of the adapter on this layer (rank_pattern, else r).
std::int64_t rank_for(const AdapterSpec& adapter, std::string_view name);
/// What its product is multiplied by: alpha (alpha_pattern, else lora_alpha) over that rank, or over its root
/// (use_rslora).
double scaling_for(const AdapterSpec& adapter, std::string_view name);

/// The adapters on the parameters of a mixture as transformers 5 stacks it: the rank of each that has one.
struct ExpertAdapters {
  std::optional<std::int64_t> gate_up, down, router;
  bool half = false;  ///< gate is targeted without up, or up without gate: one parameter
  bool any() const { return gate_up || down || router; }
};
/// `mixture` is the module's full name. The names that experts and routers had in transformers 4 stand for the
/// parameters they have become, whatever is excluded and on all layers; gate and up share a stack, and so a rank twice
/// as large (transformers_weight_conversion.py, 0.21). target_parameters name them as they are.
ExpertAdapters expert_adapters(const AdapterSpec& adapter, const std::string& mixture, const ExpertNames& names);
/// Whether it puts any on the experts or the router of a layer, as transformers 5 stacks them.
bool adapts_any_experts(const AdapterSpec& adapter, const ModelSpec& model);

}  // namespace qlp
