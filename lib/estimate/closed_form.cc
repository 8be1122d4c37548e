#include "estimate/closed_form.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/overloaded.h"
#include "base/rounding.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/optimizer_state.h"
#include "estimate/weight_list.h"
#include "estimate/zero3_plan.h"
#include "estimate/zero_plan.h"
#include "plan/fsdp1_setup.h"
#include "plan/loading.h"
#include "plan/placement.h"
#include "plan/stack_profile.h"
#include "quant/quant_state.h"

namespace qlp {
namespace {

using Weights = std::vector<ListedWeight>;

/// What a rank holds, and what its optimizer is given.
struct Held {
  CategoryBytes sums{};
  std::vector<TrainedShape> trained;
};

Bytes& of(CategoryBytes& sums, Category category) { return sums[static_cast<std::size_t>(category)]; }
Bytes& of(Held& held, Category category) { return of(held.sums, category); }

Category category_of(const ListedWeight& weight) { return weight.added() ? Category::adapter : Category::parameters; }

/// The bias of a 4-bit layer takes on another dtype for good when it is first used (Linear4bit.forward).
DType dtype_in_use(const JobSpec& job, const QuantBehaviour& quant, const ListedWeight& weight) {
  if (!job.quantization || weight.kind != WeightKind::bias) return weight.dtype;
  const bool configured = quant.honours_compute_dtype || weight.input == DType::float16;
  return quant.bias_in_compute_dtype && configured ? job.quantization->compute_dtype : weight.input;
}

/// A trained weight in a dtype, of which the rank has some rows.
TrainedShape shape_of(const ListedWeight& weight, std::int64_t rows, DType dtype) {
  return {.rows = rows, .width = weight.width, .vector = weight.vector, .dtype = dtype, .embedding = weight.embedding};
}

/// Every rank holds everything.
class Whole {
 public:
  Whole(const JobSpec& job, const StackProfile& stack) : job_(job), quant_(stack.quant()) {}

  void add(const Weights& weights, Held& held) const {
    for (const ListedWeight& weight : weights) {
      of(held, category_of(weight)) += bytes_of(weight.stored(), dtype_in_use(job_, quant_, weight));
      if (weight.trained) held.trained.push_back(shape_of(weight, weight.rows, weight.dtype));
    }
  }

 private:
  const JobSpec& job_;
  QuantBehaviour quant_;
};

Bytes ddp_buckets(const Weights& weights) {
  Bytes bytes;
  for (const ListedWeight& weight : weights)
    if (weight.trained) bytes += bytes_of(weight.stored(), weight.dtype);
  return bytes;
}

/// Flat parameters, cut into equal parts.
class Flat {
 public:
  Flat(const JobSpec& job, const Fsdp1& plan, std::int64_t rank, const StackProfile& stack)
      : job_(job),
        plan_(plan),
        groups_(fsdp1_groups(plan, job.cluster)),
        rank_(rank % groups_.ranks),
        quant_(stack.quant()),
        precision_(fsdp1_mixed_precision(plan, job)),
        compute_dtype_(precision_.param_dtype) {}
  const std::optional<DType>& buffer_dtype() const { return precision_.buffer_dtype; }

  void add(const Weights& weights, Held& held) const {
    // A layer is a unit, and the root has the rest, or all; PEFT's policy makes each trained weight beside frozen ones
    // a unit of its own.
    std::map<std::int64_t, Weights> units;
    const bool whole = plan_.auto_wrap_policy == WrapPolicy::no_wrap;
    for (const ListedWeight& weight : weights) {
      if (weight.added() && !plan_.auto_wrap_policy)
        add_unit({weight}, held);
      else
        units[whole ? ListedWeight::kOutsideLayers : weight.layer].push_back(weight);
    }
    for (const auto& [layer, unit] : units) add_unit(unit, held);
    if (!plan_.use_orig_params) add_cast_biases(weights, held);
  }

 private:
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
      // What modules hold of a whole copy on the GPU that nothing frees.
      if (!groups_.shards && compute_dtype_.value_or(dtype) == dtype)
        of(held, category_of(first)) += bytes_of(numel, dtype);
      return;
    }
    of(held, category_of(first)) += bytes_of(part, dtype);
    if (!trained) return;
    if (!plan_.use_orig_params) {
      held.trained.push_back({.rows = part, .dtype = dtype});
      return;
    }
    of(held, Category::gradients) += bytes_of(part, dtype);
    for (std::size_t i = 0; i < unit.size(); ++i) {
      const std::int64_t start = std::max(starts[i], from);
      const std::int64_t end = std::min(starts[i] + unit[i].stored(), from + part);
      if (!unit[i].trained) continue;
      TrainedShape shape = shape_of(unit[i], unit[i].rows, dtype);  // whole, and in its own shape
      if (groups_.shards)
        shape = {.rows = std::max(end - start, std::int64_t{0}), .dtype = dtype, .embedding = unit[i].embedding};
      shape.has_gradient = shape.numel() > 0;
      shape.made_as = first.dtype;
      held.trained.push_back(shape);
    }
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
};

/// Each parameter cut by rows.
class ByRows {
 public:
  ByRows(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack)
      : job_(job), plan_(plan), ranks_(shard_ranks(job, plan)), rank_(rank % ranks_), quant_(stack.quant()) {
    param_dtype_ = precision_of(job, plan).param_dtype;
    upcast_ = upcast_of(job, plan, stack);
    // A tied table is in the unit of the embedding and in that of the head, once a copy is trained beside it.
    cuts_table_twice_ = job.model.tie_word_embeddings && job.adapter && stack.fsdp2_splits_root();
  }

  void add(const Weights& weights, Held& held) const {
    const bool copies_table = std::any_of(weights.begin(), weights.end(), [](const ListedWeight& weight) {
      return weight.kind == WeightKind::saved_copy;
    });
    for (const ListedWeight& weight : weights) {
      if (!is_sharded(plan_, {.trained = weight.trained, .packed = weight.kind == WeightKind::packed})) {
        add_whole(weight, held);
        continue;
      }
      add_cast_bias(weight, held);
      if (plan_.cpu_offload) continue;
      const std::int64_t part = ceil_div(weight.rows, ranks_);  // on all ranks alike, padded
      const std::int64_t own = std::clamp(weight.rows - part * rank_, std::int64_t{0}, part);
      const DType dtype = dtype_of(weight);
      const std::int64_t cuts = cuts_table_twice_ && copies_table && weight.kind == WeightKind::table ? 2 : 1;
      of(held, category_of(weight)) += bytes_of(cuts * part * weight.width, dtype);
      if (weight.trained) held.trained.push_back(shape_of(weight, own, dtype));
    }
  }

 private:
  void add_whole(ListedWeight weight, Held& held) const {
    weight.dtype = dtype_of(weight);
    if (param_dtype_) weight.input = *param_dtype_;
    of(held, category_of(weight)) += bytes_of(weight.stored(), dtype_in_use(job_, quant_, weight));
    if (weight.trained) held.trained.push_back(shape_of(weight, weight.rows, weight.dtype));
  }

  /// The gathered bias of a 4-bit layer, whole, stays where it was cast.
  void add_cast_bias(ListedWeight weight, Held& held) const {
    if (param_dtype_) weight.dtype = weight.input = *param_dtype_;
    const DType in_use = dtype_in_use(job_, quant_, weight);
    if (in_use != weight.dtype) of(held, Category::gathered_weights) += bytes_of(weight.stored(), in_use);
  }

  DType dtype_of(const ListedWeight& weight) const {
    const bool all = upcast_ == Fsdp2Upcast::whole_model;
    const bool trained = upcast_ == Fsdp2Upcast::trained_parameters && weight.trained;
    return all || trained ? DType::float32 : weight.dtype;
  }

  const JobSpec& job_;
  const Fsdp2& plan_;
  std::int64_t ranks_, rank_;
  QuantBehaviour quant_;
  std::optional<DType> param_dtype_;
  Fsdp2Upcast upcast_ = Fsdp2Upcast::none;
  bool cuts_table_twice_ = false;
};

/// ZeRO-1 and 2: the engine casts every floating weight; the trained ones lie in flat buffers, one for each of the
/// optimizer's groups, of which a rank updates its part in float32.
class FlatGroups {
 public:
  FlatGroups(const JobSpec& job, const Zero& plan, const StackProfile& stack)
      : job_(job), stack_(stack), dtype_(zero_module_dtype(job.training, plan)) {
    offloads_ = plan.offload_optimizer.device != OffloadDevice::none;
  }
  const std::optional<DType>& buffer_dtype() const { return dtype_; }

  void add(const Weights& weights, Held& held) const {
    Weights groups[2];
    for (const ListedWeight& weight : weights) {
      const ListedWeight cast = as_cast(weight);
      if (weight.trained)
        groups[decays(weight) ? 0 : 1].push_back(cast);
      else
        of(held, category_of(weight)) += bytes_of(cast.stored(), dtype_in_use(job_, stack_.quant(), cast));
    }
    std::int64_t largest = 0;
    for (const Weights& group : groups) {
      for (const ListedWeight& weight : group) largest = std::max(largest, weight.stored());
      if (!group.empty()) add_group(group, held);
    }
    const DType first = (groups[0].empty() ? groups[1] : groups[0]).front().dtype;
    if (offloads_)
      of(held, Category::communication_buffers) += bytes_of(largest, first);
    else
      of(held, Category::workspace) += bytes_of(1, DType::float32);  // the norm of the last step
  }

 private:
  bool decays(const ListedWeight& weight) const {
    if (weight.kind == WeightKind::bias) return false;
    return weight.kind != WeightKind::norm || stack_.norms_decay(job_.model.family);
  }
  ListedWeight as_cast(ListedWeight weight) const {
    if (!dtype_) return weight;
    weight.input = *dtype_;
    if (is_floating(weight.dtype)) weight.dtype = *dtype_;
    return weight;
  }
  void add_group(const Weights& group, Held& held) const {
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
    of(held, Category::optimizer_state) += bytes_of(part, DType::float32);
    held.trained.push_back({.rows = part, .dtype = DType::float32});
  }

  const JobSpec& job_;
  const StackProfile& stack_;
  std::optional<DType> dtype_;
  bool offloads_ = false;
};

/// ZeRO-3: every weight in equal flat parts, those of trained ones with float32 master weights by sub groups. Small
/// ones are whole between steps.
class Parts {
 public:
  explicit Parts(const Zero3Options& options) : options_(options) {}

  void add(const Weights& weights, Held& held) const {
    Weights persistent, groups[2];
    for (ListedWeight weight : weights) {
      if (options_.module_dtype && is_floating(weight.dtype)) weight.dtype = *options_.module_dtype;
      if (!options_.offload_param) of(held, category_of(weight)) += bytes_of(part(weight), weight.dtype);
      if (weight.stored() <= options_.param_persistence_threshold) persistent.push_back(weight);
      const bool decays = weight.kind != WeightKind::bias && (weight.kind != WeightKind::norm || options_.norms_decay);
      if (weight.trained) groups[decays ? 0 : 1].push_back(weight);
    }
    add_persistent(persistent, held);
    for (const Weights& group : groups) add_group(group, held);
    const DType dtype = (groups[0].empty() ? groups[1] : groups[0]).front().dtype;
    const std::int64_t bucket = options_.contiguous_gradients ? options_.reduce_bucket_size : 0;
    of(held, Category::communication_buffers) += bytes_of(bucket, dtype);
    // A flag for numbers that are none, and the norm of the last step.
    if (!options_.offload_optimizer)
      of(held, Category::workspace) += bytes_of(1, DType::boolean) + bytes_of(1, DType::float64);
  }

 private:
  std::int64_t part(const ListedWeight& weight) const { return ceil_div(weight.stored(), options_.world_size); }

  /// A single one is copied out of its buffer. One rank's parts are whole as they are, unless they are on the host.
  void add_persistent(const Weights& weights, Held& held) const {
    const bool single = weights.size() == 1;
    if (!single && options_.world_size == 1 && !options_.offload_param) return;
    for (const ListedWeight& weight : weights) {
      const std::int64_t whole = single ? weight.stored() : part(weight) * options_.world_size;
      of(held, Category::gathered_weights) += bytes_of(whole, weight.dtype);
    }
  }

  void add_group(const Weights& group, Held& held) const {
    if (options_.offload_optimizer) return;
    std::int64_t sub_group = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      sub_group += part(group[i]);
      of(held, Category::gradients) += bytes_of(part(group[i]), group[i].dtype);
      if (sub_group < options_.sub_group_size && i + 1 < group.size()) continue;
      of(held, Category::optimizer_state) += bytes_of(sub_group, DType::float32);
      held.trained.push_back({.rows = std::exchange(sub_group, 0), .dtype = DType::float32});
    }
  }

  const Zero3Options& options_;
};

/// bitsandbytes' statistics: a value per block and a table for each weight; with double quantization the values take a
/// byte, and have statistics of their own, with one table of the process.
Bytes quant_state(const JobSpec& job, const Weights& weights, const QuantBehaviour& behaviour) {
  if (!job.quantization) return {};
  constexpr std::int64_t kTable = 16, kNestedTable = 256;
  const bool nested = job.quantization->double_quant;
  std::int64_t floats = nested ? kNestedTable : 0, bytes = 0;
  for (const ListedWeight& weight : weights) {
    if (weight.kind != WeightKind::packed) continue;
    const std::int64_t blocks = ceil_div(weight.elements, FourBitFormat::kBlocksize);
    floats += kTable + (nested ? 1 + ceil_div(blocks, FourBitFormat::kNestedBlocksize) : blocks);
    if (nested && behaviour.own_statistics) floats += kNestedTable;
    if (nested) bytes += blocks;
  }
  return bytes_of(floats, DType::float32) + bytes_of(bytes, DType::uint8);
}

/// Of the decoder's rotary module, or of those of all layers: inv_freq, in newer models what it was at first, in older
/// ones tables of all positions; and the factor of Gemma's embedding. FSDP1 casts all of them, but not the second set
/// of frequencies that longrope keeps.
Bytes buffers(const JobSpec& job, const StackProfile& stack, const std::optional<DType>& cast) {
  const ModelBehaviour model = stack.model(job.model.family);
  const RotaryBehaviour& rotary = model.rotary;
  const auto width =
      static_cast<std::int64_t>(static_cast<double>(job.model.head_dim) * job.model.partial_rotary_factor);
  const std::int64_t modules =
      (rotary.place == RotaryPlace::decoder ? 1 : 0) + (rotary.in_every_attention ? job.model.num_hidden_layers : 0);
  const std::int64_t frequencies = modules * (rotary.keeps_original ? 2 : 1) * (width / 2);
  const std::int64_t tables = rotary.keeps_tables ? modules * 2 * job.model.max_position_embeddings * width : 0;
  const std::int64_t factors = job.model.family == Family::gemma2 && model.embedding_scales_itself ? 1 : 0;
  const bool second_set = job.model.rope == RopeKind::longrope && rotary.keeps_original;
  return bytes_of(frequencies, cast.value_or(DType::float32)) + bytes_of(tables + factors, cast.value_or(job.dtype)) +
         bytes_of(second_set ? width / 2 : 0, DType::float32);
}

/// Of the thread that runs the forward pass and of that of the backward pass (CublasHandlePool.cpp).
Bytes cublas_workspaces(const JobSpec& job, const StackProfile& stack) {
  const std::uint32_t chip = job.cluster.gpu.compute_capability;
  const bool large = chip == 90 || (chip > 90 && stack.newer_cublas_workspaces());
  constexpr std::uint64_t kThreads = 2, kLarge = 8ULL * 4096, kSmall = 2ULL * 4096 + 8ULL * 16;  // in KiB
  return Bytes{large ? kLarge : kSmall} * 1024 * kThreads;
}

/// The scale of the loss and the count of steps since it grew (torch.amp.GradScaler): a float and an integer.
Bytes loss_scale() { return Bytes{4 + 4}; }

Held everything_held(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank, const StackProfile& stack) {
  const Weights weights = list_weights(job, stack.load());
  Held held;
  std::optional<DType> cast_buffers;
  bool scales_on_gpu = job.training.fp16;
  std::visit(Overloaded{[&](const Single&) { Whole(job, stack).add(weights, held); },
                        [&](const Ddp&) {
                          Whole(job, stack).add(weights, held);
                          of(held, Category::communication_buffers) += ddp_buckets(weights);
                        },
                        [&](const Fsdp1& fsdp1) {
                          const Flat flat(job, fsdp1, rank, stack);
                          flat.add(weights, held);
                          cast_buffers = flat.buffer_dtype();
                          if (job.training.max_grad_norm > 0 || stack.always_works_out_norm())
                            of(held, Category::workspace) += bytes_of(1, DType::float32);
                        },
                        [&](const Fsdp2& fsdp2) { ByRows(job, fsdp2, rank, stack).add(weights, held); },
                        [&](const Zero& zero) {
                          scales_on_gpu = false;
                          if (zero.stage == 3) {
                            const Zero3Options options = *zero3_options(job, zero, rank, stack);
                            Parts(options).add(weights, held);
                            cast_buffers = options.module_dtype;
                            const bool in_parts = load_path(job, plan) == LoadPath::in_parts;
                            if (cast_buffers && in_parts && options.keeps_first_frequencies)
                              of(held, Category::parameters) += buffers(job, stack, std::nullopt);
                            return;
                          }
                          const FlatGroups groups(job, zero, stack);
                          groups.add(weights, held);
                          cast_buffers = groups.buffer_dtype();
                        }},
             plan);
  of(held, Category::parameters) += buffers(job, stack, cast_buffers);
  of(held, Category::quant_state) += quant_state(job, weights, stack.quant());
  if (stack.adds_loss_in_place()) of(held, Category::logits_and_loss) += bytes_of(1, DType::float32);
  of(held, Category::workspace) += cublas_workspaces(job, stack);
  if (scales_on_gpu) of(held, Category::workspace) += loss_scale();
  return held;
}

OptimizerState optimizer_state(const JobSpec& job, const Held& held, const StackProfile& stack) {
  return optimizer_state(job.training.optimizer.kind, stack.optimizer(), held.trained);
}

}  // namespace

CategoryBytes persistent_state(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank) {
  const StackProfile stack(job.stack);
  Held held = everything_held(job, plan, rank, stack);
  of(held, Category::optimizer_state) += optimizer_state(job, held, stack).allocated;
  return held.sums;
}

Bytes managed_state(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank) {
  const StackProfile stack(job.stack);
  return optimizer_state(job, everything_held(job, plan, rank, stack), stack).managed;
}

ParameterCounts count_parameters(const JobSpec& job) {
  ParameterCounts counts;
  for (const ListedWeight& weight : list_weights(job, LoadBehaviour{})) {
    counts.total += static_cast<std::uint64_t>(weight.elements);
    if (weight.trained) counts.trainable += static_cast<std::uint64_t>(weight.elements);
  }
  return counts;
}

double ledger_units(std::span<const LedgerEntry> entries, std::int64_t ranks) {
  constexpr double kUnitBits = 16;
  double units = 0;
  for (const LedgerEntry& entry : entries) {
    const double bits = static_cast<double>(entry.weights * (1 + entry.moments)) * entry.bits;
    units += bits / kUnitBits / static_cast<double>(entry.sharded ? ranks : 1);
  }
  return units;
}

}  // namespace qlp
