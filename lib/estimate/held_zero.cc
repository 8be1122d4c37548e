#include "estimate/held_zero.h"

#include <algorithm>
#include <utility>

#include "base/rounding.h"
#include "estimate/zero3_plan.h"
#include "estimate/zero_plan.h"
#include "shard/zero_layout.h"

namespace qlp {
namespace {

/// ZeRO-1 and 2: the engine casts every floating weight; the trained ones lie in flat buffers, one for each of the
/// optimizer's groups, of which a rank updates its part, as a rule in float32.
class FlatGroups {
 public:
  FlatGroups(const JobSpec& job, const Zero& plan, std::int64_t rank, const StackProfile& stack)
      : job_(job), rank_(rank), stack_(stack), dtype_(zero_module_dtype(job.training, plan)) {
    offloads_ = plan.offload_optimizer.device != OffloadDevice::none;
    master_ = zero_master_dtype(plan);
    own_optimizer_ = zero_has_own_optimizer(plan);
    kernel_flag_ = zero_has_kernel_flag(plan);
    round_robin_ = plan.round_robin_gradients;
    shards_nothing_ = zero_takes_unfused_optimizer(job.training, plan);
  }
  const std::optional<DType>& buffer_dtype() const { return dtype_; }

  void add(const Weights& weights, Held& held) const {
    Weights groups[2];
    for (const ListedWeight& weight : weights) {
      const ListedWeight cast = as_cast(weight);
      const bool norms_decay = stack_.trainer.norms_decay(job_.model.family);
      if (weight.trained && shards_nothing_) add_whole(cast, held);
      if (weight.trained)
        groups[zero_group(own_optimizer_, weight.has_weight_decay(norms_decay))].push_back(cast);
      else
        of(held, category_of(weight)) += bytes_of(cast.stored(), dtype_in_use(job_, stack_.quant, cast));
    }
    if (shards_nothing_) return;
    std::int64_t largest = 0;
    for (const Weights& group : groups) {
      for (const ListedWeight& weight : group) largest = std::max(largest, weight.stored());
      if (!group.empty()) add_group(group, &group == groups || groups[0].empty(), held);
    }
    if (kernel_flag_) of(held, Category::workspace) += bytes_of(1, DType::int32);
    const DType first = (groups[0].empty() ? groups[1] : groups[0]).front().dtype;
    if (offloads_)
      of(held, Category::communication_buffers) += bytes_of(largest, first);
    else
      of(held, Category::workspace) += bytes_of(1, DType::float32);  // the norm of the last step
  }

 private:
  /// FP16_UnfusedOptimizer's copy in float32.
  static void add_whole(const ListedWeight& weight, Held& held) {
    of(held, category_of(weight)) += bytes_of(weight.stored(), weight.dtype);
    of(held, Category::optimizer_state) += bytes_of(weight.stored(), DType::float32);
    held.trained.push_back({.rows = weight.rows, .width = weight.width, .dtype = DType::float32});
  }
  ListedWeight as_cast(ListedWeight weight) const {
    if (!dtype_) return weight;
    weight.input = *dtype_;
    weight.dtype = zero_cast(weight.dtype, dtype_);
    return weight;
  }
  /// How many parameters the rank has a part of.
  std::int64_t slices(const Weights& group) const {
    std::vector<std::int64_t> numels;
    if (round_robin_)
      for (const std::size_t i : round_robin_order(group.size(), job_.cluster.world_size))
        numels.push_back(group[i].stored());
    else
      for (const ListedWeight& weight : group) numels.push_back(weight.stored());
    return static_cast<std::int64_t>(ZeroLayout(numels, job_.cluster.world_size).members(rank_).size());
  }
  void add_group(const Weights& group, bool first, Held& held) const {
    std::int64_t numel = 0;
    DType dtype = group.front().dtype;
    for (const ListedWeight& weight : group) {
      numel += weight.stored();
      if (weight.dtype != dtype) dtype = DType::float32;  // that of a mixture
    }
    numel = round_up(numel, 2 * job_.cluster.world_size);
    const std::int64_t part = numel / job_.cluster.world_size;
    of(held, category_of(group.front())) += bytes_of(numel, dtype);
    if (offloads_) return;
    of(held, Category::optimizer_state) += bytes_of(part, master_);
    held.trained.push_back({.rows = part, .dtype = master_, .slices = first ? slices(group) : 0});
  }

  const JobSpec& job_;
  std::int64_t rank_ = 0;
  const StackProfile& stack_;
  std::optional<DType> dtype_;
  bool offloads_ = false;
  DType master_ = DType::float32;
  bool own_optimizer_ = false, kernel_flag_ = false, shards_nothing_ = false, round_robin_ = false;
};

/// ZeRO-3: every weight in equal flat parts, those of trained ones with float32 master weights by sub groups. Small
/// ones are whole between steps.
class Parts {
 public:
  explicit Parts(const Zero3Options& options) : options_(options) {}

  void add(const Weights& weights, Held& held) const {
    Weights groups[2];
    for (ListedWeight weight : weights) {
      weight.dtype = zero_cast(weight.dtype, options_.module_dtype);
      if (!options_.offload_param && !weight.trained)
        of(held, category_of(weight)) += bytes_of(part(weight), weight.dtype);
      if (options_.secondary_ranks > 1 && !weight.trained)  // after a step those of trained ones are out of date
        of(held, category_of(weight)) +=
            bytes_of(part(weight) * options_.world_size / options_.secondary_ranks, weight.dtype);
      if (in_eight_bits(weight)) of(held, category_of(weight)) += bytes_of(weight.stored(), weight.dtype);
      const std::size_t group = zero_group(options_.one_group, weight.has_weight_decay(options_.norms_decay));
      if (weight.trained) groups[group].push_back(weight);
    }
    add_persistent(persistent_weights(weights, options_), held);
    const ListedWeight& first = groups[groups[0].empty() ? 1 : 0].front();
    for (const Weights& group : groups) add_group(group, first, held);
    const std::int64_t bucket = options_.contiguous_gradients ? options_.reduce_bucket_size : 0;
    of(held, Category::communication_buffers) += bytes_of(bucket, options_.reduced_dtype());
    if (options_.has_kernel_flag) of(held, Category::workspace) += bytes_of(1, DType::int32);
    // A flag for numbers that are none, and the norm of the last step.
    if (!options_.offload_optimizer)
      of(held, Category::workspace) += bytes_of(1, DType::boolean) + bytes_of(1, DType::float64);
  }

 private:
  /// Which stays whole beside its part: its layer knows it by a second name.
  static bool in_eight_bits(const ListedWeight& weight) {
    return weight.kind == WeightKind::packed && weight.stored() == weight.elements;
  }
  std::int64_t part(const ListedWeight& weight) const { return ceil_div(weight.stored(), options_.world_size); }

  /// A single one is copied out of its buffer. One rank's parts are whole as they are, unless they are on the host.
  void add_persistent(const Weights& weights, Held& held) const {
    const bool single = weights.size() == 1;
    if (!single && options_.world_size == 1 && !options_.offload_param) return;
    for (const ListedWeight& weight : weights) {
      const std::int64_t whole = single ? weight.stored() : part(weight) * options_.world_size;
      of(held, Category::gathered_weights) += bytes_of(whole, zero_cast(weight.dtype, options_.module_dtype));
    }
  }

  /// `first` of all that is trained: the parts of all are one buffer, in its dtype and category.
  void add_group(const Weights& group, const ListedWeight& first, Held& held) const {
    if (!options_.offload_param)
      for (const ListedWeight& weight : group) of(held, category_of(first)) += bytes_of(part(weight), first.dtype);
    if (options_.offload_optimizer) return;
    std::int64_t sub_group = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      sub_group += part(group[i]);
      of(held, Category::gradients) += bytes_of(part(group[i]), options_.gradient_dtype());
      if (sub_group < options_.sub_group_size && i + 1 < group.size()) continue;
      of(held, Category::optimizer_state) += bytes_of(sub_group, options_.master_dtype);
      held.trained.push_back({.rows = std::exchange(sub_group, 0), .dtype = options_.master_dtype});
    }
  }

  const Zero3Options& options_;
};

}  // namespace

std::optional<DType> hold_flat_groups(const JobSpec& job, const Zero& plan, std::int64_t rank,
                                      const StackProfile& stack, const Weights& weights, Held& held) {
  const FlatGroups groups(job, plan, rank, stack);
  groups.add(weights, held);
  return groups.buffer_dtype();
}

void hold_parts(const Zero3Options& options, const Weights& weights, Held& held) { Parts(options).add(weights, held); }

}  // namespace qlp
