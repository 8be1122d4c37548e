#include "estimate/closed_form.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/overloaded.h"
#include "base/rounding.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/held_weights.h"
#include "estimate/held_zero.h"
#include "estimate/optimizer_state.h"
#include "estimate/parallel_rules.h"
#include "estimate/runtimes.h"
#include "estimate/weight_list.h"
#include "estimate/zero3_plan.h"
#include "estimate/zero_plan.h"
#include "model/family_design.h"
#include "plan/fsdp1_setup.h"
#include "plan/loading.h"
#include "plan/placement.h"
#include "plan/stack_profile.h"
#include "quant/quant_state.h"

namespace qlp {
namespace {

/// Every rank holds everything.
class Whole {
 public:
  Whole(const JobSpec& job, const StackProfile& stack) : job_(job), quant_(stack.quant) {}

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
        quant_(stack.quant),
        precision_(fsdp1_mixed_precision(plan, job)),
        compute_dtype_(precision_.param_dtype) {}
  const std::optional<DType>& buffer_dtype() const { return precision_.buffer_dtype; }

  void add(const Weights& weights, Held& held) const {
    // A layer is a unit, and the root has the rest, or all; PEFT's policy makes each trained weight beside frozen ones
    // a unit of its own.
    std::map<std::int64_t, Weights> units;
    const bool whole = plan_.auto_wrap_policy == WrapPolicy::no_wrap;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const ListedWeight& weight = weights[i];
      const bool beside_bias = i + 1 < weights.size() && weights[i + 1].adapter_bias;
      if (weight.added() && !weight.beside_embedding && !plan_.auto_wrap_policy)
        beside_bias ? add_unit({weight, weights[++i]}, held) : add_unit({weight}, held);
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
      if (trained) hold_counts(unit, held);
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
};

/// Each parameter cut by rows.
class ByRows {
 public:
  ByRows(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack)
      : job_(job),
        plan_(plan),
        ranks_(shard_ranks(job, plan)),
        rank_(shard_place(job, plan, rank)),
        of_experts_(expert_share(job, plan, rank)),
        quant_(stack.quant) {
    param_dtype_ = precision_of(job, plan).param_dtype;
    upcast_ = upcast_of(job, plan, stack);
    // A tied table is in the unit of the embedding and in that of the head, once a copy is trained beside it.
    cuts_table_twice_ = job.model.tie_word_embeddings && job.adapter && stack.fsdp2.splits_root();
  }

  void add(const Weights& weights, Held& held) const {
    const bool copies_table = std::any_of(weights.begin(), weights.end(), [](const ListedWeight& weight) {
      return weight.kind == WeightKind::saved_copy && !weight.vector;
    });
    for (const ListedWeight& weight : weights) {
      if (!is_sharded(plan_, {.trained = weight.trained, .packed = weight.kind == WeightKind::packed})) {
        add_whole(weight, held);
        continue;
      }
      add_cast_bias(weight, held);
      if (plan_.cpu_offload) continue;
      const bool spread = weight.experts && job_.cluster.mesh.ep > 1;
      const auto [part, own] = spread ? rows_of(weight.rows, of_experts_.ranks, of_experts_.rank)
                                      : rows_of(weight.rows, ranks_, rank_);  // on all ranks alike, padded
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
  RankShare of_experts_;
  QuantBehaviour quant_;
  std::optional<DType> param_dtype_;
  Fsdp2Upcast upcast_ = Fsdp2Upcast::none;
  bool cuts_table_twice_ = false;
};

/// bitsandbytes' statistics: a value per block and a table for each weight; with double quantization the values take a
/// byte, and have statistics of their own, with one table of the process. Of 8-bit weights a value per row.
Bytes quant_state(const JobSpec& job, const Weights& weights, const QuantBehaviour& behaviour) {
  if (!job.quantization) return {};
  constexpr std::int64_t kTable = 16, kNestedTable = 256;
  const bool nested = job.quantization->double_quant;
  std::int64_t floats = nested ? kNestedTable : 0, bytes = 0;
  for (const ListedWeight& weight : weights) {
    if (weight.kind != WeightKind::packed) continue;
    if (job.quantization->eight_bit()) {
      floats += weight.rows;
      continue;
    }
    const std::int64_t blocks = ceil_div(weight.elements, FourBitFormat::kBlocksize);
    floats += kTable + (nested ? 1 + ceil_div(blocks, FourBitFormat::kNestedBlocksize) : blocks);
    if (nested && behaviour.own_statistics) floats += kNestedTable;
    if (nested) bytes += blocks;
  }
  return bytes_of(floats, DType::float32) + bytes_of(bytes, DType::uint8);
}

/// Of the decoder's rotary module, or of those of all layers: inv_freq, in newer models what it was at first, in older
/// ones tables of all positions; and the factor of Gemma's embedding. FSDP1 casts all of them, but not the frequencies
/// that longrope picks: a second set, before 5.0 in the place of the buffer that the module was made with.
Bytes buffers(const JobSpec& job, const StackProfile& stack, const std::optional<DType>& cast) {
  const ModelBehaviour model = stack.models.behaviour(job.model.family);
  const RotaryBehaviour& rotary = model.rotary;
  const std::int64_t width = rotary_width(job.model);
  const std::int64_t modules =
      (rotary.place == RotaryPlace::decoder ? rotary_tables(job.model, model.hands_on_both_rotaries) : 0) +
      (rotary.in_every_attention ? job.model.num_hidden_layers : 0);
  const std::int64_t frequencies = modules * (rotary.keeps_original ? 2 : 1) * (width / 2);
  const std::int64_t tables = rotary.keeps_tables ? modules * 2 * job.model.max_position_embeddings * width : 0;
  const EmbeddingScale scale = where_embedding_scales(job.model.family, model.embedding_scales_itself);
  const std::int64_t factors = scale == EmbeddingScale::by_module ? 1 : 0;
  const bool picks = job.model.rope == RopeKind::longrope;
  const DType of_first = picks && !rotary.keeps_original ? DType::float32 : cast.value_or(DType::float32);
  return bytes_of(frequencies, of_first) + bytes_of(tables + factors, cast.value_or(job.dtype)) +
         bytes_of(picks && rotary.keeps_original ? width / 2 : 0, DType::float32);
}

/// The rows of trained tokens as they were, in the dtype of those that are trained; DeepSpeed's engine casts them.
Bytes token_buffer(const JobSpec& job, const StackProfile& stack, const std::optional<DType>& cast) {
  if (!job.adapter) return {};
  const auto tokens = static_cast<std::int64_t>(job.adapter->trainable_token_indices.size());
  const bool wide = job.adapter->autocast_adapter_dtype && stack.load.casts_adapters;
  const bool prepared = job.quantization && job.quantization->prepare_kbit;
  return bytes_of(tokens * job.model.hidden_size, cast.value_or(wide || prepared ? DType::float32 : job.dtype));
}

/// Of the thread that runs the forward pass and of that of the backward pass (CublasHandlePool.cpp).
Bytes cublas_workspaces(const JobSpec& job, const StackProfile& stack) {
  const std::uint32_t chip = job.cluster.gpu.compute_capability;
  const bool large = chip == 90 || (chip > 90 && stack.torch.newer_cublas_workspaces());
  constexpr std::uint64_t kThreads = 2, kLarge = 8ULL * 4096, kSmall = 2ULL * 4096 + 8ULL * 16;  // in KiB
  return Bytes{large ? kLarge : kSmall} * 1024 * kThreads;
}

/// What arrives from the stages before and after, for each microbatch (torch.distributed.pipelining, stage.py).
Bytes pipeline_buffers(const JobSpec& job, const ShardingPlan& plan, const ModelSlice& slice) {
  const TrainingSpec& training = job.training;
  const std::int64_t neighbours = (slice.first() ? 0 : 1) + (slice.last() ? 0 : 1);
  const std::int64_t hidden = training.micro_batch_size * training.seq_len * job.model.hidden_size;
  return bytes_of(neighbours * training.gradient_accumulation_steps * hidden, dtype_between_stages(job, plan));
}

/// The scale of the loss and the count of steps since it grew (torch.amp.GradScaler): a float and an integer.
Bytes loss_scale() { return Bytes{4 + 4}; }

/// The weights of a stage: its layers; the embedding on the first one, norm and head on the last.
Weights weights_of(const JobSpec& job, std::int64_t rank, const StackProfile& stack) {
  Weights weights = list_weights(job, stack.load);
  const ModelSlice slice = slice_of(job, rank);
  const std::int64_t layers = job.model.num_hidden_layers;
  std::erase_if(weights, [&](const ListedWeight& weight) {
    if (weight.layer == ListedWeight::kOutsideLayers)
      return weight.embedding || weight.beside_embedding ? !slice.first() : !slice.last();
    return weight.layer < slice.first_layer(layers) || weight.layer >= slice.end_layer(layers);
  });
  return weights;
}

/// What Adagrad goes on to hold of the parameters that it was made for: its sums; under FSDP2 counts, too, and them.
void hold_first_sums(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack, const Weights& weights,
                     Held& held) {
  if (!std::holds_alternative<Adagrad>(job.training.optimizer.kind)) return;
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  const auto* zero = std::get_if<Zero>(&plan);
  const bool cut_later = fsdp2 && keeps_first_sums(job, *fsdp2);
  const bool made_again = zero && zero_adagrad_start(*zero) == AdagradStart::unmoved;
  const bool sums_on_gpu = load_path(job, plan) == LoadPath::gpu;
  const bool upcast = cut_later && upcast_of(job, *fsdp2, stack) == Fsdp2Upcast::trained_parameters;
  for (const ListedWeight& weight : weights) {
    if (!weight.trained) continue;
    if (cut_later) of(held, Category::optimizer_state) += bytes_of(1, DType::float32);
    if ((cut_later || made_again) && sums_on_gpu)
      of(held, Category::optimizer_state) += bytes_of(weight.stored(), weight.dtype);
    if (cut_later) of(held, category_of(weight)) += bytes_of(weight.stored(), upcast ? DType::float32 : weight.dtype);
  }
}

Held everything_held(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank, const StackProfile& stack) {
  const Weights weights = weights_of(job, rank, stack);
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
                          const bool clips = job.training.max_grad_norm > 0 || stack.trainer.always_works_out_norm();
                          if (clips && stack.fsdp1.keeps_zero_scalar())
                            of(held, Category::workspace) += bytes_of(1, DType::float32);
                        },
                        [&](const Fsdp2& fsdp2) { ByRows(job, fsdp2, rank, stack).add(weights, held); },
                        [&](const Zero& zero) {
                          scales_on_gpu = false;
                          if (zero.stage == 3) {
                            const Zero3Options options = *zero3_options(job, zero, rank, stack);
                            hold_parts(options, weights, held);
                            cast_buffers = options.module_dtype;
                            const bool in_parts = load_path(job, plan) == LoadPath::in_parts;
                            if (cast_buffers && in_parts && options.keeps_first_frequencies)
                              of(held, Category::parameters) += buffers(job, stack, std::nullopt);
                            return;
                          }
                          cast_buffers = hold_flat_groups(job, zero, stack, weights, held);
                        }},
             plan);
  of(held, Category::parameters) += buffers(job, stack, cast_buffers);
  of(held, Category::adapter) += token_buffer(job, stack, cast_buffers);
  of(held, Category::communication_buffers) += pipeline_buffers(job, plan, slice_of(job, rank));
  of(held, Category::quant_state) += quant_state(job, weights, stack.quant);
  if (stack.trainer.adds_loss_in_place()) of(held, Category::logits_and_loss) += bytes_of(1, DType::float32);
  of(held, Category::workspace) += cublas_workspaces(job, stack);
  if (scales_on_gpu) of(held, Category::workspace) += loss_scale();
  hold_first_sums(job, plan, stack, weights, held);
  return held;
}

OptimizerState optimizer_state(const JobSpec& job, const ShardingPlan& plan, const Held& held,
                               const StackProfile& stack) {
  return optimizer_state(job.training.optimizer.kind, stack.optimizers.behaviour(), held.trained,
                         adagrad_start(job, plan));
}

}  // namespace

CategoryBytes persistent_state(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank) {
  const StackProfile stack(job.stack);
  Held held = everything_held(job, plan, rank, stack);
  of(held, Category::optimizer_state) += optimizer_state(job, plan, held, stack).allocated;
  return held.sums;
}

Bytes managed_state(const JobSpec& job, const ShardingPlan& plan, std::int64_t rank) {
  const StackProfile stack(job.stack);
  return optimizer_state(job, plan, everything_held(job, plan, rank, stack), stack).managed;
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
