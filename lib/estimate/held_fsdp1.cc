#include "estimate/held_fsdp1.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/rounding.h"
#include "estimate/wrap_rules.h"
#include "plan/fsdp1_setup.h"

namespace qlp {
namespace {

/// Flat parameters, cut into equal parts.
class Flat {
 public:
  Flat(const JobSpec& job, const Fsdp1& plan, std::int64_t rank, const StackProfile& stack)
      : job_(job),
        plan_(plan),
        groups_(fsdp1_groups(plan, job.cluster)),
        rank_(rank % groups_.ranks),
        quant_(stack.quant),
        precision_(fsdp1_mixed_precision(plan, job)),
        compute_dtype_(precision_.param_dtype) {
    if (plan.auto_wrap_policy != WrapPolicy::no_wrap) wrapped_ = wrapped_kinds(job, plan.transformer_cls_names_to_wrap);
  }
  const std::optional<DType>& buffer_dtype() const { return precision_.buffer_dtype; }

  void add(const Weights& weights, Held& held) const {
    // A layer is a unit, or its blocks are, and the root has the rest, or all; PEFT's policy makes each trained weight
    // beside frozen ones a unit of its own.
    std::map<Place, Weights> units;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const ListedWeight& weight = weights[i];
      const bool beside_bias = i + 1 < weights.size() && weights[i + 1].adapter_bias;
      if (weight.added() && !weight.beside_embedding && !plan_.auto_wrap_policy)
        beside_bias ? add_unit({weight, weights[++i]}, held) : add_unit({weight}, held);
      else
        units[unit_of(weight)].push_back(weight);
    }
    for (const auto& [place, unit] : units) add_unit(unit, held);
    if (!plan_.use_orig_params) add_cast_biases(weights, held);
  }

 private:
  /// A module that is a unit: the kind of a layer, or of one of its blocks. The root is outside all layers.
  using Place = std::pair<std::int64_t, ModuleKind>;

  Place unit_of(const ListedWeight& weight) const {
    if (weight.block && wraps(*weight.block)) return {weight.layer, *weight.block};
    const bool in_layer = weight.layer != ListedWeight::kOutsideLayers && wraps(ModuleKind::decoder_layer);
    return in_layer ? Place{weight.layer, ModuleKind::decoder_layer}
                    : Place{ListedWeight::kOutsideLayers, ModuleKind::model};
  }
  bool wraps(ModuleKind kind) const { return std::ranges::find(wrapped_, kind) != wrapped_.end(); }

  void add_unit(const Weights& unit, Held& held) const {
    const ListedWeight& first = unit.front();
    const bool trained = std::any_of(unit.begin(), unit.end(), [](const ListedWeight& w) { return w.trained; });
    // With original parameters each starts at 16 bytes, and the sum divides by the ranks.
    const auto aligned =
        plan_.use_orig_params ? 16 / static_cast<std::int64_t>(size_of(compute_dtype_.value_or(first.dtype))) : 1;
    std::vector<std::int64_t> starts;
    std::int64_t numel = 0;
    for (const ListedWeight& weight : unit) {
      starts.push_back(round_up(numel, aligned));
      numel = starts.back() + weight.stored();
    }
    if (plan_.use_orig_params) numel = round_up(numel, groups_.ranks);
    const std::int64_t part = groups_.shards ? ceil_div(numel, groups_.ranks) : numel;
    const std::int64_t from = groups_.shards ? part * rank_ : 0;

    // accelerate trains flat parameters in float32 under mixed precision.
    const DType dtype = trained && job_.training.mixed_precision() ? DType::float32 : first.dtype;
    if (plan_.cpu_offload) {
      if (trained) hold_counts(unit, held);
      // What modules hold of a whole copy on the GPU that nothing frees.
      if (!groups_.shards && compute_dtype_.value_or(dtype) == dtype)
        of(held, category_of(first)) += bytes_of(numel, dtype);
      return;
    }
    of(held, category_of(first)) += bytes_of(part, dtype);
    if (!plan_.use_orig_params) {
      (trained ? held.trained : held.frozen).push_back({.rows = part, .dtype = dtype});
      return;
    }
    if (trained) of(held, Category::gradients) += bytes_of(part, dtype);
    for (std::size_t i = 0; i < unit.size(); ++i) {
      const std::int64_t start = std::max(starts[i], from);
      const std::int64_t end = std::min(starts[i] + unit[i].stored(), from + part);
      TrainedShape shape = shape_of(unit[i], unit[i].rows, dtype);  // whole, and in its own shape
      if (groups_.shards)
        shape = {.rows = std::max(end - start, std::int64_t{0}), .dtype = dtype, .embedding = unit[i].embedding};
      shape.has_gradient = shape.numel() > 0;
      shape.made_as = first.dtype;
      (unit[i].trained ? held.trained : held.frozen).push_back(shape);
    }
  }

  /// Which accelerate has moved to the GPU: all that Adagrad keeps there of parameters on the host.
  void hold_counts(const Weights& unit, Held& held) const {
    if (!std::holds_alternative<Adagrad>(job_.training.optimizer.kind)) return;
    const auto own = std::count_if(unit.begin(), unit.end(), [](const ListedWeight& w) { return w.trained; });
    of(held, Category::optimizer_state) += bytes_of(plan_.use_orig_params ? own : 1, DType::float32);
  }

  /// Modules go on holding views of the flat parameter, or what was put in their place.
  void add_cast_biases(const Weights& weights, Held& held) const {
    for (const ListedWeight& weight : weights) {
      const DType dtype = dtype_in_use(job_, quant_, weight);
      if (weight.kind == WeightKind::bias && job_.quantization && dtype != compute_dtype_)
        of(held, groups_.shards ? Category::gathered_weights : Category::parameters) +=
            bytes_of(weight.stored(), dtype);
    }
  }

  const JobSpec& job_;
  const Fsdp1& plan_;
  Fsdp1Groups groups_;
  std::int64_t rank_;
  QuantBehaviour quant_;
  MixedPrecision precision_;
  std::optional<DType> compute_dtype_;
  std::vector<ModuleKind> wrapped_;
};

}  // namespace

std::optional<DType> hold_flat_parameters(const JobSpec& job, const Fsdp1& plan, std::int64_t rank,
                                          const StackProfile& stack, const Weights& weights, Held& held) {
  const Flat flat(job, plan, rank, stack);
  flat.add(weights, held);
  return flat.buffer_dtype();
}

}  // namespace qlp
