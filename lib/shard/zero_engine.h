// DeepSpeedEngine around a causal language model, as accelerate and the Trainer drive it: what all stages of ZeRO share
// (deepspeed/runtime/engine.py, 0.18.3; accelerate/utils/deepspeed.py).
#pragma once

#include <vector>

#include "shard/sharding_runtime.h"
#include "shard/zero_options.h"

namespace qlp {

class ZeroEngine : public ShardingRuntime {
 public:
  /// The Trainer leaves the model where it is; the engine moves it.
  void place_model(Context&, CausalLm&) override {}
  void begin_micro_step(Context&, bool sync) override { boundary_ = sync; }
  /// Hooks on the outputs divide gradients by the accumulation steps.
  CausalLmOutput forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                         const Tensor& num_items, const RunOptions& options) override;
  bool steps_in_backward() const final { return true; }
  void backward(Context& ctx, const Tensor& loss, Optimizer& optimizer) final;

 protected:
  /// Whether a step follows this backward pass (is_gradient_accumulation_boundary).
  bool boundary() const { return boundary_; }
  /// The hooks on the outputs of a forward pass, which weigh it among the micro steps.
  static void divide_gradients(const CausalLmOutput& output, double weight);
  /// The loss, as the backward pass begins with it.
  virtual Tensor scaled(Context& ctx, const Tensor& loss) const = 0;
  /// Of stages 1 and 2: the module is cast, moved and broadcast.
  void prepare_engine(Context& ctx, CausalLm& model, const ZeroOptions& options);
  /// Of stages 1 and 2, clone_tensors_for_torch_save (deepspeed/checkpoint/utils.py): every rank copies the whole model
  /// to the host, frozen parameters and quant states too; the first one writes.
  StateDict host_copies(Context& ctx, CausalLm& model);
  /// IntTensor([0]) of DeepSpeed's FusedAdam (ops/adam/fused_adam.py).
  void make_kernel_flag(Context& ctx);
  /// Of torch's Adagrad (engine.py, basic_optimizer; initialize_optimizer_states of either stage).
  void make_first_sums(Context& ctx, CausalLm& model);

 private:
  /// _backward_epilogue: the loss and its scaled copy are still there.
  virtual void finish_backward(Context& ctx) = 0;
  virtual void step(Context& ctx, Optimizer& optimizer) = 0;

  bool boundary_ = true;
  Tensor kernel_flag_;
  std::vector<Tensor> first_sums_;
};

/// module.bfloat16() or half(): floating parameters and buffers are cast one by one, those of children first.
void cast_module(Context& ctx, Module& module, DType dtype);

}  // namespace qlp
