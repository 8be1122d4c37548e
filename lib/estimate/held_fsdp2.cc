#include "estimate/held_fsdp2.h"

#include <algorithm>
#include <optional>

#include "estimate/fsdp2_plan.h"
#include "estimate/parallel_rules.h"
#include "plan/placement.h"

namespace qlp {
namespace {

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

}  // namespace

void hold_rows(const JobSpec& job, const Fsdp2& plan, std::int64_t rank, const StackProfile& stack,
               const Weights& weights, Held& held) {
  ByRows(job, plan, rank, stack).add(weights, held);
}

}  // namespace qlp
