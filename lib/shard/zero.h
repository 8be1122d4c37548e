// ZeRO-1 and 2 around a causal language model.
#pragma once

#include <memory>
#include <vector>

#include "shard/zero_engine.h"
#include "shard/zero_optimizer.h"

namespace qlp {

class ZeroRuntime final : public ZeroEngine {
 public:
  explicit ZeroRuntime(const ZeroOptions& options) : options_(options) {}

  /// Where the optimizer's state cannot be sliced by parameters.
  Diagnostics check(CausalLm& model) const override;
  void prepare(Context& ctx, CausalLm& model) override;
  /// The partitions of the flat groups.
  std::vector<TrainedTensor> trained(CausalLm&) override { return optimizer_->trained(); }
  StateDict state_dict(Context& ctx, CausalLm& model, bool /*keeps*/) override { return host_copies(ctx, model); }
  void save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                           const TrainingStateRequest& request) override;
  double grad_norm(Context& ctx) const override { return optimizer_->grad_norm(ctx); }
  bool skipped() const override { return optimizer_->skipped(); }

 private:
  Tensor scaled(Context& ctx, const Tensor& loss) const override;
  void finish_backward(Context& ctx) override;
  void step(Context& ctx, Optimizer& optimizer) override { optimizer_->step(ctx, optimizer); }
  void begin_micro_step(Context& ctx, bool sync) override;

  ZeroOptions options_;
  std::unique_ptr<ZeroOptimizer> optimizer_;
};

}  // namespace qlp
