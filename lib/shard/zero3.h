// ZeRO-3 around a causal language model.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "shard/parameter_cutter.h"
#include "shard/zero3_hooks.h"
#include "shard/zero3_optimizer.h"
#include "shard/zero_engine.h"

namespace qlp {

class Zero3Runtime final : public ZeroEngine, public ParameterCutter {
 public:
  explicit Zero3Runtime(const Zero3Options& options) : options_(options) {}

  void make(Context& ctx, Parameter& parameter, DType dtype) override;
  void make_replaced(Context& ctx, const Parameter& parameter, DType dtype) override;
  void fill(Context& ctx, Parameter& parameter) override;
  void prepare(Context& ctx, CausalLm& model) override;
  void begin_micro_step(Context& ctx, bool sync) override;
  CausalLmOutput forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                         const Tensor& num_items, const RunOptions& options) override;
  void zero_grad(Context& ctx, const std::vector<Tensor>& parameters) override;
  StateDict state_dict(Context& ctx, CausalLm& model, bool keeps) override;
  void save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                           const TrainingStateRequest& request) override;
  /// The master weights of the sub groups.
  std::vector<TrainedTensor> trained(CausalLm&) override { return optimizer_->trained(); }
  double grad_norm(Context& ctx) const override { return optimizer_->grad_norm(ctx); }
  bool skipped() const override { return optimizer_->skipped(); }

 private:
  void cut(Context& ctx, Parameter& parameter);
  void set_hooks(Module& module, ForwardHooks* hooks);
  Tensor scaled(Context& ctx, const Tensor& loss) const override;
  void finish_backward(Context& ctx) override { optimizer_->gradients().finish_backward(ctx); }
  void step(Context& ctx, Optimizer& optimizer) override { optimizer_->step(ctx, optimizer); }

  Zero3Options options_;
  std::vector<std::unique_ptr<Zero3Param>> params_;  ///< as they were cut
  std::unordered_map<const Parameter*, Zero3Param*> of_parameter_;
  /// Of a replaced parameter: it is in a cycle of Python's objects, and goes when they are collected.
  std::vector<Tensor> replaced_;
  std::vector<Tensor> first_frequencies_;
  std::unique_ptr<Zero3Coordinator> coordinator_;
  std::unique_ptr<Zero3Hooks> hooks_;
  Zero3LinearHooks below_leaves_;
  std::unique_ptr<Zero3Optimizer> optimizer_;
};

}  // namespace qlp
