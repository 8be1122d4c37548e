#include "base/shape.h"
#include "estimate/check_fixes.h"
#include "estimate/check_rules.h"
#include "estimate/weight_list.h"
#include "plan/placement.h"

namespace qlp {
namespace {

/// A whole base that takes less than this part of the peak is not worth a word.
constexpr double kWorthSharding = 0.1;

bool shards_anything(const ShardingPlan& plan) {
  return is_sharded(plan, {.trained = true}) || is_sharded(plan, {.trained = false});
}

template <class Counts>
Bytes sum_of(const Weights& weights, Counts&& counts) {
  Bytes sum;
  for (const ListedWeight& weight : weights)
    if (counts(weight)) sum += bytes_of(weight.stored(), weight.dtype);
  return sum;
}

bool is_large(Bytes bytes, const CheckedPlan& checked) {
  return static_cast<double>(bytes.count()) >=
         kWorthSharding * static_cast<double>(checked.rank().peak.figures.allocated.count());
}

Suspicion suspicion(Severity severity, std::string code, std::string message, Bytes evidence, std::string key_path) {
  Suspicion found;
  found.finding.severity = severity;
  found.finding.code = std::move(code);
  found.finding.message = std::move(message);
  found.finding.evidence = evidence;
  found.finding.key_path = std::move(key_path);
  return found;
}

/// A plan that replicates by its nature is a choice; one that shards and leaves this out is a mistake.
Suspicion whole(const CheckedPlan& checked, std::string code, std::string message, Bytes evidence) {
  const Severity severity = shards_anything(checked.plan.plan) ? Severity::error : Severity::warning;
  Suspicion found = suspicion(severity, std::move(code), std::move(message), evidence, "plans");
  add(found.fixes, {as_meant(checked), under_plan(checked, "fsdp2"), under_plan(checked, "fsdp1-full-shard")});
  return found;
}

Suspicion wrongly_wrapped(const CheckedPlan& checked, std::string code, std::string message, Bytes evidence) {
  const std::string key_path = "plans." + checked.plan.name + ".auto_wrap_policy";
  Suspicion found = suspicion(Severity::error, std::move(code), std::move(message), evidence, key_path);
  add(found.fixes, {as_meant(checked), usual_wrapping(checked)});
  return found;
}

/// All parameters are gathered together, so that nothing is freed before the backward pass is over.
void check_wrapping(const CheckedPlan& checked, std::vector<Suspicion>& out) {
  const auto* fsdp1 = std::get_if<Fsdp1>(&checked.plan.plan);
  const auto* fsdp2 = std::get_if<Fsdp2>(&checked.plan.plan);
  const bool none = (fsdp1 && fsdp1->auto_wrap_policy == WrapPolicy::no_wrap) ||
                    (fsdp2 && fsdp2->auto_wrap_policy == Fsdp2Wrap::no_wrap);
  const auto gathered = static_cast<std::size_t>(Category::gathered_weights);
  if (none)
    out.push_back(wrongly_wrapped(checked, "no-wrap-policy",
                                  "no layer is a unit of its own: the whole model is gathered",
                                  checked.rank().training_peak.categories[gathered]));
}

/// A flat parameter that holds frozen and trained ones has a gradient for both (torch/distributed/fsdp/_flat_param.py).
void check_units(const CheckedPlan& checked, const Weights& weights, std::vector<Suspicion>& out) {
  const auto* fsdp1 = std::get_if<Fsdp1>(&checked.plan.plan);
  if (!fsdp1 || !checked.job.adapter || !fsdp1->auto_wrap_policy) return;
  const Bytes frozen = sum_of(weights, [](const ListedWeight& w) { return !w.trained && w.layer == 0; });
  out.push_back(
      wrongly_wrapped(checked, "mixed-fsdp1-unit",
                      "a layer's frozen and trained parameters are in one flat parameter, whose gradient is as "
                      "large as both; the frozen ones of a layer",
                      frozen));
}

}  // namespace

std::vector<Suspicion> sharding_rules(const CheckedPlan& checked) {
  std::vector<Suspicion> out;
  const ClusterSpec& cluster = checked.job.cluster;
  if (!checked.ran() || cluster.world_size == 1 || cluster.mesh != Mesh{}) return out;  // a mesh cuts by itself
  check_wrapping(checked, out);
  const Weights weights = list_weights(checked.job, checked.stack.load);
  check_units(checked, weights, out);
  // An 8-bit weight is known to its layer by a second name: ZeRO-3 cuts a copy.
  const bool eight_bit = checked.job.quantization && checked.job.quantization->eight_bit();
  Weights whole_weights;  // on every rank
  for (const ListedWeight& weight : weights) {
    const bool packed = weight.kind == WeightKind::packed;
    if (!is_sharded(checked.plan.plan, {.trained = weight.trained, .packed = packed}) || (packed && eight_bit))
      whole_weights.push_back(weight);
  }
  const Bytes base =
      sum_of(whole_weights, [](const ListedWeight& w) { return !w.added() && w.kind != WeightKind::packed; });
  if (is_large(base, checked))
    out.push_back(whole(checked, "float-base-unsharded", "every rank holds the unquantized base whole", base));
  const Bytes packed = sum_of(whole_weights, [](const ListedWeight& w) { return w.kind == WeightKind::packed; });
  if (is_large(packed, checked)) {
    auto found = whole(checked, "quantized-base-replicated",
                       std::string("every rank holds the ") + (eight_bit ? "8" : "4") + "-bit base whole", packed);
    found.finding.severity = Severity::note;
    out.push_back(std::move(found));
  }
  const Bytes added = sum_of(whole_weights, [](const ListedWeight& w) { return w.added(); });
  if (added != Bytes{} && shards_anything(checked.plan.plan))
    out.push_back(whole(checked, "adapter-unsharded",
                        "every rank holds the adapter whole, with its gradients and optimizer state", added));
  return out;
}

}  // namespace qlp
