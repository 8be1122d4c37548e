#include "estimate/closed_form.h"

#include <optional>

#include "base/overloaded.h"
#include "base/rounding.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/held_fsdp1.h"
#include "estimate/held_fsdp2.h"
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
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  const auto* zero = std::get_if<Zero>(&plan);
  if (zero && zero_has_own_optimizer(*zero)) {  // the Trainer makes none
    if (!zero_makes_first_sums(*zero)) return;
    for (const ListedWeight& weight : weights)
      if (weight.trained)
        of(held, Category::optimizer_state) +=
            bytes_of(weight.stored(), zero_cast(weight.dtype, zero_module_dtype(job.training, *zero)));
    return;
  }
  if (!std::holds_alternative<Adagrad>(job.training.optimizer.kind)) return;
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

/// AdaLOMO's sums for what is frozen: of the rows and columns that it has as it is stored, or of what FSDP1 makes of
/// it.
void hold_frozen_sums(const JobSpec& job, const ShardingPlan& plan, const Weights& weights, Held& held) {
  const auto* lomo = std::get_if<Lomo>(&job.training.optimizer.kind);
  if (!lomo || !lomo->adaptive) return;
  const auto add = [&](bool vector, std::int64_t rows, std::int64_t width) {
    of(held, Category::optimizer_state) += bytes_of(vector ? rows * width : rows + width, DType::float32);
  };
  if (std::holds_alternative<Fsdp1>(plan)) {
    for (const TrainedShape& part : held.frozen) add(part.vector, part.rows, part.width);
    return;
  }
  for (const ListedWeight& weight : weights)
    if (!weight.trained) add(weight.vector, weight.rows, weight.width);
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
                          cast_buffers = hold_flat_parameters(job, fsdp1, rank, stack, weights, held);
                          const bool clips = job.training.max_grad_norm > 0 || stack.trainer.always_works_out_norm();
                          if (clips && stack.fsdp1.keeps_zero_scalar())
                            of(held, Category::workspace) += bytes_of(1, DType::float32);
                        },
                        [&](const Fsdp2& fsdp2) { hold_rows(job, fsdp2, rank, stack, weights, held); },
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
                          cast_buffers = hold_flat_groups(job, zero, rank, stack, weights, held);
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
  hold_frozen_sums(job, plan, weights, held);
  return held;
}

OptimizerState optimizer_state(const JobSpec& job, const ShardingPlan& plan, const Held& held,
                               const StackProfile& stack) {
  const auto* zero = std::get_if<Zero>(&plan);
  const OptimizerKind& chosen = job.training.optimizer.kind;
  return optimizer_state(zero ? zero_optimizer_kind(chosen, *zero) : chosen, stack.optimizers.behaviour(), held.trained,
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
