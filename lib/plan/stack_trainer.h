// What the Trainer of transformers does, by version.
#pragma once

#include <cstdint>

#include "model/model_spec.h"
#include "plan/stack_versions.h"

namespace qlp {

class TrainerStack {
 public:
  explicit TrainerStack(const StackVersions& versions) : transformers_(versions.transformers) {}

  /// It turns the model's cache off (TrainingArguments.use_cache, trainer.py; seen in 5.24, not in 4.57, where only
  /// gradient_checkpointing does).
  bool turns_cache_off() const { return transformers_ >= Version{5, 0, 0}; }
  /// Norm weights are in the optimizer's group with weight decay. From 4.53 on names decide; before, the class of the
  /// norm, of which only Llama's was known. trainer.py, 4.53.
  bool norms_decay(Family family) const { return transformers_ < Version{4, 53, 0} && family != Family::llama; }
  /// It reads sync_each_batch: in 5.24, not in 4.57, taken to hold for all of 5; and as long as it ran its micro steps
  /// under accelerate's accumulate(), until 4.45. trainer.py.
  bool honours_sync_each_batch() const {
    return transformers_ >= Version{5, 0, 0} || transformers_ < Version{4, 46, 0};
  }
  /// The batch is held until the end of training_step ("del inputs" came later). trainer.py, 4.41.
  bool keeps_inputs() const { return transformers_ < Version{4, 41, 0}; }
  /// The loop over an epoch is a function of its own. trainer.py, _run_epoch of 5.24 (not in 4.57).
  bool epoch_is_function() const { return transformers_ >= Version{5, 0, 0}; }
  /// The norm of the gradients is worked out where nothing is clipped too, by clipping at infinity. trainer.py,
  /// _get_grad_norm of 5.24 (4.57 does not).
  bool always_works_out_norm() const { return transformers_ >= Version{5, 0, 0}; }

  /// It hands context_parallel its batches (_prepare_context_parallel_inputs); looked at in 4.57 and 5.24.
  bool shares_sequences() const { return transformers_ >= Version{4, 57, 0}; }
  /// Also where it evaluates (prediction_step): so in 5.24, not in 4.57.
  bool shares_evaluated_sequences() const { return transformers_ >= Version{5, 23, 0}; }

  /// The number of label tokens is kept as a tensor, gathered from all ranks. trainer.py, 4.50.
  bool counts_items_on_device() const { return transformers_ >= Version{4, 50, 0}; }
  /// That number is divided once more, by what the ranks share, which makes it a float. trainer.py, 5.0.
  bool item_count_is_float() const { return transformers_ >= Version{5, 0, 0}; }
  /// average_tokens_across_devices is on by default. training_args.py, 4.54.
  bool averages_tokens() const { return transformers_ >= Version{4, 54, 0}; }
  /// The loss that is added up is divided by the accumulation steps. trainer.py, until 4.45.
  bool divides_reported_loss() const { return transformers_ < Version{4, 46, 0}; }
  /// The running sum of losses is added to in place. trainer.py, 5.0.
  bool adds_loss_in_place() const { return transformers_ >= Version{5, 0, 0}; }
  /// The loss of evaluation is divided by a number of tokens, which is counted for it: so in 4.57, in 4.48 it is a mean
  /// (trainer.py, prediction_step).
  bool evaluation_counts_items() const { return counts_items_on_device() && transformers_ >= Version{4, 57, 0}; }

  /// max_shard_size of save_pretrained: 5 GB, from 5.0 on 50 GB. modeling_utils.py.
  std::uint64_t saved_file_bytes() const { return transformers_ >= Version{5, 0, 0} ? 50'000'000'000 : 5'000'000'000; }
  /// Under ZeRO-3 save_model() gathers all to write adapters alone, whatever DeepSpeed's configuration says.
  /// trainer.py, save_model: 5.0, not in 4.57.6.
  bool zero3_gathers_for_adapters() const { return transformers_ >= Version{5, 0, 0}; }
  /// What is trained on a ParallelismConfig's mesh is saved by every rank, from parameters as they are cut. 4.54 to
  /// 4.57 (trainer.py, save_model; gone in 5.0).
  bool saves_cut_parameters() const { return transformers_ >= Version{4, 54, 0} && transformers_ < Version{5, 0, 0}; }

 private:
  Version transformers_;
};

}  // namespace qlp
