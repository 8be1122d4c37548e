// DeepSpeed's FP16_UnfusedOptimizer, which takes ZeRO-1's place where gradients of bfloat16 are added up in float32:
// the engine tells two optimizers apart by words that are the same, "bf16". Nothing is sharded
// (deepspeed/runtime/fp16/unfused_optimizer.py; engine.py, _configure_optimizer; 0.18.3).
#pragma once

#include <vector>

#include "shard/zero_engine.h"
#include "shard/zero_options.h"

namespace qlp {

class ZeroUnfusedRuntime final : public ZeroEngine {
 public:
  explicit ZeroUnfusedRuntime(const ZeroOptions& options) : options_(options) {}

  void prepare(Context& ctx, CausalLm& model) override;
  /// A copy in float32 of every parameter.
  std::vector<TrainedTensor> trained(CausalLm&) override { return masters_; }
  void initialize_states(Context& ctx, Optimizer& optimizer) override;
  StateDict state_dict(Context& ctx, CausalLm& model, bool /*keeps*/) override { return host_copies(ctx, model); }
  void save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                           const TrainingStateRequest& request) override;
  double grad_norm(Context&) const override { return norm_; }

 private:
  Tensor scaled(Context&, const Tensor& loss) const override { return loss; }
  void finish_backward(Context& ctx) override;
  void step(Context& ctx, Optimizer& optimizer) override;

  void reduce(Context& ctx, const std::vector<Tensor>& gradients) const;
  void look_for_overflow(Context& ctx) const;
  double norm_of(Context& ctx, std::size_t group) const;
  std::size_t group_of(const Parameter& parameter) const;

  ZeroOptions options_;
  std::vector<TrainedTensor> masters_;
  double norm_ = 0;
};

}  // namespace qlp
