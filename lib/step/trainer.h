// The training loop of transformers' Trainer, with every small tensor that it keeps (transformers/trainer.py).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/causal_lm.h"
#include "optim/adagrad.h"
#include "optim/grad_scaler.h"
#include "optim/mesh_norm.h"
#include "optim/optimizer.h"
#include "shard/sharding_runtime.h"
#include "step/context_parallel.h"
#include "step/evaluation.h"
#include "step/parameter_groups.h"
#include "step/pipeline.h"
#include "step/sample_data.h"
#include "step/save.h"

namespace qlp {

/// Told the name of each phase as it begins: "prepare", "micro1.forward", "micro1.backward", "step1.optimizer", ...
using PhaseObserver = std::function<void(const std::string& name)>;

/// How many label tokens an optimizer step has, by which the loss is divided (num_items_in_batch).
enum class ItemCount : std::uint8_t {
  host_number,   ///< a Python number; nothing on the GPU
  device_int64,  ///< a tensor of one int64
  device_float,  ///< that, divided by the number of ranks that share it
};

struct TrainerOptions {
  std::int64_t world_size = 1;
  std::int64_t micro_batch_size = 1;
  std::int64_t seq_len = 0;
  std::int64_t gradient_accumulation_steps = 1;
  bool sync_each_batch = false;  ///< else gradients stay on the rank until the last micro step (no_sync)
  std::int64_t num_steps = 3;
  OptimizerKind optimizer = AdamW{};
  OptimizerBehaviour optimizer_behaviour{};
  AdagradStart adagrad_start = AdagradStart::moved;
  /// Adagrad was made for the parameters as they were before the runtime set itself up, and keeps what it then made.
  bool keeps_first_sums = false;
  /// The optimizer is made before the runtime sets itself up, which leaves parameters what they are.
  bool makes_optimizer_first = false;
  GroupOptions groups{};
  ItemCount item_count = ItemCount::device_int64;
  bool averages_tokens = true;      ///< average_tokens_across_devices: the number is summed over the ranks
  bool adds_loss_in_place = false;  ///< tr_loss += (transformers 5.0)
  bool epoch_is_function = false;   ///< whose locals are gone when training is finished
  bool clips = true;
  double max_grad_norm = 1;            ///< 0: no limit
  bool autocast = false;               ///< accelerate wraps the forward pass in torch.autocast
  bool scales_loss = false;            ///< mixed precision with float16
  RankGroup gradient_parts;            ///< ranks that each have a part of the gradients, and scale one loss
  bool keeps_inputs = false;           ///< the batch is held until the end of the micro step
  bool divides_reported_loss = false;  ///< what is added up is the loss over the accumulation steps
  bool outputs_to_fp32 = false;        ///< accelerate converts what the forward pass returns
  RunOptions run;
  std::int64_t vocab_size = 0;
  std::int64_t rank = 0;        ///< among those that have samples of their own
  double learning_rate = 1e-3;  ///< of a run that computes
  std::optional<EvaluationOptions> evaluation;
  bool evaluation_counts_items = true;       ///< the loss of evaluation is divided by a count too
  RankGroup tensor_parallel{MeshAxis::tp};   ///< ranks that share each layer, and its batch
  RankGroup expert_parallel{MeshAxis::ep};   ///< ranks that share the experts of each layer
  RankGroup context_parallel{MeshAxis::cp};  ///< ranks that share each sequence
  bool splits_on_device = true;              ///< which is cut into their pieces there, not on the host
  PipelineOptions pipeline;
  SaveOptions save;
  std::int64_t checkpoint_step = 0;  ///< after which model and optimizer are saved; 0: never
};

/// What a step of a run that computes has come to, on this rank.
struct StepNumbers {
  double loss = 0;       ///< of its micro steps together, over the label tokens of all ranks times their number
  double grad_norm = 0;  ///< of all ranks, before clipping; 0 where none is worked out
  bool skipped = false;  ///< a gradient has overflowed, and nothing was updated
};

class Trainer {
 public:
  Trainer(CausalLm& model, ShardingRuntime& runtime, TrainerOptions options, PhaseObserver begin_phase);

  /// Trainer.train() up to the loop: the model goes to its place, is wrapped, and gets its optimizer.
  void prepare(Context& ctx);
  /// All steps.
  void train(Context& ctx);
  /// Trainer.evaluate(), after training.
  void evaluate(Context& ctx);
  /// Trainer.save_model(), after that.
  void save(Context& ctx);
  /// Of each step; none on the dry device.
  const std::vector<StepNumbers>& numbers() const { return numbers_; }
  /// Of the optimizer, beside the allocator's memory.
  Bytes managed_state() const { return optimizer_->managed_state(); }

 private:
  void make_first_sums(Context& ctx);
  void make_optimizer(Context& ctx);
  Tensor counted_items(Context& ctx, double own) const;
  /// A batch of made-up text.
  Tensor tokens(Context& ctx, std::int64_t batch_size, std::int64_t micro, Text text = Text::ids) const;
  double label_tokens(std::int64_t batch_size) const;
  void micro_step(Context& ctx, std::int64_t micro, bool sync);
  void pipeline_step(Context& ctx);
  StagePass stage_forward(Context& ctx, std::int64_t i);
  void stage_backward(Context& ctx, std::int64_t i, const StagePass& pass, bool last);
  void add_up_loss(Context& ctx);
  void optimizer_step(Context& ctx);
  void end_step(Context& ctx, std::int64_t step);
  Tensor clip_grad_norm(Context& ctx, double max_norm);
  void touch_updated(Context& ctx) const;
  void store_flos(Context& ctx);
  /// What a micro step is given; of sequences that ranks share this rank's piece.
  struct Batch {
    SplitBuffers split;
    Tensor ids, labels, shifted_labels, positions;
  };
  Batch make_batch(Context& ctx, std::int64_t batch_size, std::int64_t micro) const;
  CausalLmOutput compute_loss(Context& ctx, const Batch& batch, const Tensor& num_items, RunOptions run);
  Prediction predict(Context& ctx);

  CausalLm& model_;
  ShardingRuntime& runtime_;
  TrainerOptions options_;
  PhaseObserver begin_phase_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<GradScaler> scaler_;
  std::vector<Tensor> trained_;
  std::map<LayerMesh, MeshTensors> by_mesh_;  ///< the same
  std::vector<std::vector<AdagradState>> first_sums_;
  std::int64_t micro_ = 0;
  std::vector<StepNumbers> numbers_;
  PipelineBuffers pipeline_{options_.pipeline};
  // What the loop keeps between steps.
  Tensor total_loss_, step_loss_, num_items_, grad_norm_;
};

}  // namespace qlp
