#include "model/target_matching.h"

#include <algorithm>
#include <cmath>
#include <re2/re2.h>
#include <string>
#include <vector>

namespace qlp {
namespace {

bool ends_with_part(std::string_view name, std::string_view part) {
  return name == part || (name.ends_with(part) && name[name.size() - part.size() - 1] == '.');
}

/// Only whether names match is asked, so groups need not be kept.
re2::RE2::Options pattern_options() {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_never_capture(true);
  return options;
}

/// The value of the first pattern that matches the end of the name from some part on (peft/utils/other.py,
/// get_pattern_key).
template <class T>
T by_pattern(const std::vector<std::pair<std::string, T>>& patterns, std::string_view name, T otherwise) {
  for (const auto& [pattern, value] : patterns)
    if (matches_pattern("(.*\\.)?(" + pattern + ")", name)) return value;
  return otherwise;
}

/// One pattern that matches what any of them does.
std::string join_patterns(const std::vector<std::string>& patterns) {
  std::string joined;
  for (const std::string& pattern : patterns) joined += (joined.empty() ? "" : "|") + pattern;
  return joined;
}

bool ends_with_any(std::string_view name, const std::vector<std::string>& parts) {
  return std::ranges::any_of(parts, [&](const std::string& part) { return ends_with_part(name, part); });
}

/// exclude_modules, and whatever is in a module of modules_to_save (0.16 on; check_adapter says what came before).
bool excluded(const AdapterSpec& adapter, std::string_view name) {
  if (!adapter.exclude_pattern.empty() && matches_pattern(adapter.exclude_pattern, name)) return true;
  if (ends_with_any(name, adapter.exclude_modules)) return true;
  return std::ranges::any_of(adapter.modules_to_save, [&](const std::string& saved) {
    return matches_pattern("(.*\\.)?(" + saved + ")(\\..*)?", name);
  });
}

bool named(const AdapterSpec& adapter, std::string_view name) {
  if (!adapter.target_pattern.empty()) return matches_pattern(adapter.target_pattern, name);
  return ends_with_any(name, adapter.target_modules);
}

/// layers_to_transform looks at the first number of a name that stands behind another part than the first. Names that
/// are given in full are taken as they are, as all-linear's are from 0.15 on; patterns name layers themselves.
bool on_chosen_layer(const AdapterSpec& adapter, std::string_view name) {
  if (adapter.layers_to_transform.empty() || adapter.target_modules.empty()) return true;
  if (std::ranges::find(adapter.target_modules, name) != adapter.target_modules.end()) return true;
  const std::string list =
      adapter.layers_pattern.empty() ? "[^.]*" : "(?:" + join_patterns(adapter.layers_pattern) + ")";
  const std::string first = adapter.layers_pattern.empty() ? ".*?\\." : "(?:|.*?\\.)";
  const re2::RE2 expression(first + list + "\\.(\\d+)\\..*", re2::RE2::Quiet);
  std::int64_t index = 0;
  return expression.ok() && re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), expression, &index) &&
         std::ranges::find(adapter.layers_to_transform, index) != adapter.layers_to_transform.end();
}

}  // namespace

std::optional<std::string> error_in_pattern(const std::string& pattern) {
  const re2::RE2 expression(pattern, pattern_options());
  return expression.ok() ? std::nullopt : std::optional(expression.error());
}

bool matches_pattern(const std::string& pattern, std::string_view name) {
  const re2::RE2 expression(pattern, pattern_options());
  return expression.ok() && re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), expression);
}

bool is_target(const AdapterSpec& adapter, std::string_view name, bool is_head) {
  return ((adapter.all_linear && !is_head) || named(adapter, name)) && !excluded(adapter, name) &&
         on_chosen_layer(adapter, name);
}

bool adapts_embedding(const AdapterSpec& adapter) { return is_target(adapter, "model.embed_tokens", true); }

bool is_saved_module(const AdapterSpec& adapter, std::string_view name) {
  return std::any_of(adapter.modules_to_save.begin(), adapter.modules_to_save.end(),
                     [&](const std::string& saved) { return name.ends_with(saved); });
}

std::int64_t rank_for(const AdapterSpec& adapter, std::string_view name) {
  return by_pattern(adapter.rank_pattern, name, adapter.r);
}

double scaling_for(const AdapterSpec& adapter, std::string_view name) {
  const auto rank = static_cast<double>(rank_for(adapter, name));
  return by_pattern(adapter.alpha_pattern, name, adapter.lora_alpha) / (adapter.use_rslora ? std::sqrt(rank) : rank);
}

ExpertAdapters expert_adapters(const AdapterSpec& adapter, const std::string& mixture, const ExpertNames& names) {
  const auto by_old_name = [&](std::string_view leaf) {
    return names.known_to_peft && (adapter.all_linear || named(adapter, mixture + ".experts." + std::string(leaf)));
  };
  const auto by_name = [&](const std::string& name) { return ends_with_any(name, adapter.target_parameters); };
  const std::string gate_up = mixture + ".experts.gate_up_proj", down = mixture + ".experts.down_proj";
  ExpertAdapters out;
  const bool gate = by_old_name(names.gate);
  out.half = gate != by_old_name(names.up);
  if (gate)
    out.gate_up = 2 * adapter.r;
  else if (by_name(gate_up))
    out.gate_up = rank_for(adapter, gate_up);
  if (by_old_name(names.down) || by_name(down)) out.down = rank_for(adapter, down);
  const bool router = names.known_to_peft && (adapter.all_linear || named(adapter, mixture + ".gate"));
  if (router || by_name(mixture + ".gate.weight")) out.router = rank_for(adapter, mixture + ".gate");
  return out;
}

bool adapts_any_experts(const AdapterSpec& adapter, const ModelSpec& model) {
  for (std::int64_t layer = 0; layer < model.num_hidden_layers; ++layer) {
    const std::string mixture = "model.layers." + std::to_string(layer) + ".mlp";
    if (expert_adapters(adapter, mixture, design_of(model.family).experts).any()) return true;
  }
  return false;
}

}  // namespace qlp
