#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "estimate/check_fixes.h"
#include "estimate/check_rules.h"
#include "tensor/op.h"

namespace qlp {
namespace {

/// From this part of the allocated peak on something is called dominant.
constexpr double kDominant = 0.25;

const PhaseReport* peak_phase(const RankReport& rank) {
  const auto phase = std::ranges::find(rank.phases, rank.training_peak.phase_label, &PhaseReport::name);
  return phase == rank.phases.end() ? nullptr : &*phase;
}

template <class Counts>
Bytes sum_of(const PhaseReport& phase, Counts&& counts) {
  Bytes sum;
  for (const InventoryItem& item : phase.inventory)
    if (counts(item)) sum += item.allocated;
  return sum;
}

bool dominates(Bytes part, const RankReport& rank) {
  return static_cast<double>(part.count()) >=
         kDominant * static_cast<double>(rank.training_peak.figures.allocated.count());
}

/// The logits, what the loss keeps and makes of them, and their gradients.
bool is_of_logits(const InventoryItem& item) {
  constexpr std::array kGradients{name_of(Op::log_softmax_backward), name_of(Op::nll_loss_backward)};
  return item.category == Category::logits_and_loss || item.module == "lm_head" ||
         std::ranges::find(kGradients, item.op) != kGradients.end();
}

using AdaptedModules = std::set<std::string_view>;

/// The linear layers that have an adapter: something of its matrix A is alive.
AdaptedModules adapted_modules(const PhaseReport& phase) {
  AdaptedModules names;
  for (const InventoryItem& item : phase.inventory) {
    const std::string_view module = item.module;
    if (const auto end = module.find(".lora_A"); end != module.npos) names.insert(module.substr(0, end));
  }
  return names;
}

/// Made for the adapters: casts of their inputs, dropout (these models have no other) and its masks, products with A.
bool is_of_adapter(const InventoryItem& item, const AdaptedModules& adapted) {
  const bool cast = item.op == name_of(Op::to_copy) && adapted.contains(item.module);
  return item.category == Category::activations &&
         (cast || item.module.find(".lora_") != std::string::npos || item.op == name_of(Op::native_dropout));
}

bool is_activation(const InventoryItem& item) { return item.category == Category::activations; }

Suspicion dominant(const CheckedPlan& checked, std::string code, const std::string& what, Bytes evidence,
                   std::string key_path) {
  Suspicion out;
  const double share = static_cast<double>(evidence.count()) /
                       static_cast<double>(checked.rank().training_peak.figures.allocated.count());
  out.finding.code = std::move(code);
  out.finding.message = what + " are " + std::to_string(static_cast<int>(share * 100)) + " % of the training peak";
  out.finding.evidence = evidence;
  out.finding.key_path = std::move(key_path);
  return out;
}

void check_logits(const CheckedPlan& checked, const PhaseReport& phase, std::vector<Suspicion>& out) {
  const Bytes logits = sum_of(phase, is_of_logits);
  if (!dominates(logits, checked.rank())) return;
  auto suspicion =
      dominant(checked, "logits-dominate", "the logits (tokens x vocabulary), their softmax and their gradients",
               logits, "training.loss");
  add(suspicion.fixes, {fused_loss(checked), smaller_batch(checked)});
  suspicion.finding.hint = "train on shorter sequences";
  out.push_back(std::move(suspicion));
}

void check_adapter(const CheckedPlan& checked, const PhaseReport& phase, std::vector<Suspicion>& out) {
  const AdaptedModules adapted = adapted_modules(phase);
  const Bytes activations = sum_of(phase, [&](const InventoryItem& item) { return is_of_adapter(item, adapted); });
  if (!checked.job.adapter || !dominates(activations, checked.rank())) return;
  auto suspicion = dominant(checked, "adapter-activations-dominate",
                            "what the adapters keep for the backward pass (copies of their inputs, dropout)",
                            activations, "adapter");
  add(suspicion.fixes, {checkpointing(checked), narrow_adapters(checked), no_dropout(checked), smaller_batch(checked)});
  out.push_back(std::move(suspicion));
}

void check_layers(const CheckedPlan& checked, const PhaseReport& phase, std::vector<Suspicion>& out) {
  const Bytes activations = sum_of(phase, is_activation);
  if (!dominates(activations, checked.rank())) return;
  const bool kept = checked.job.training.gradient_checkpointing != GradientCheckpointing::none;
  auto suspicion =
      kept ? dominant(checked, "layer-inputs-dominate",
                      "the inputs of the layers, which checkpointing keeps (layers x tokens x hidden), "
                      "and the layer that is run again",
                      activations, "training.seq_len")
           : dominant(checked, "no-gradient-checkpointing", "activations that are kept for the backward pass",
                      activations, "training.gradient_checkpointing");
  add(suspicion.fixes, {checkpointing(checked), smaller_batch(checked)});
  suspicion.finding.hint = "train on shorter sequences";
  out.push_back(std::move(suspicion));
}

}  // namespace

std::vector<Suspicion> activation_rules(const CheckedPlan& checked) {
  std::vector<Suspicion> out;
  if (!checked.ran()) return out;
  const PhaseReport* phase = peak_phase(checked.rank());
  if (phase == nullptr) return out;
  check_logits(checked, *phase, out);
  check_adapter(checked, *phase, out);
  check_layers(checked, *phase, out);
  return out;
}

}  // namespace qlp
