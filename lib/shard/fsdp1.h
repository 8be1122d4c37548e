// FullyShardedDataParallel as accelerate and the Trainer set it up around a causal language model.
#pragma once

#include <memory>
#include <vector>

#include "shard/fsdp1_tree.h"
#include "shard/sharding_runtime.h"

namespace qlp {

class Fsdp1Runtime final : public ShardingRuntime {
 public:
  /// passes_by_layer: checkpointing with reentrance, where the backward pass of each layer is one by itself.
  Fsdp1Runtime(const Fsdp1Options& options, bool passes_by_layer)
      : options_(options), passes_by_layer_(passes_by_layer) {}

  void place_model(Context&, CausalLm&) override {}  ///< moved unit by unit in prepare()
  Diagnostics check(CausalLm& model) const override;
  void prepare(Context& ctx, CausalLm& model) override;
  /// The original parameters, or the flat ones.
  std::vector<TrainedTensor> trained(CausalLm& model) override;
  std::vector<Shape> frozen(CausalLm& model) override;
  void begin_micro_step(Context& ctx, bool sync) override;
  CausalLmOutput forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                         const Tensor& num_items, const RunOptions& options) override;
  Tensor clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, double max_norm) override;
  StateDict state_dict(Context& ctx, CausalLm& model, bool keeps) override;
  /// Adapters alone are picked out when all is gathered (peft save_and_load.py, get_peft_model_state_dict).
  void save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                           const TrainingStateRequest& request) override;

 private:
  StateDict gathered(Context& ctx, CausalLm& model, Fsdp1Tree::StateRequest request);

  Fsdp1Options options_;
  bool passes_by_layer_;
  std::unique_ptr<Fsdp1Tree> tree_;
  Tensor zero_scalar_;  ///< FSDP's clip_grad_norm_ keeps one
};

}  // namespace qlp
