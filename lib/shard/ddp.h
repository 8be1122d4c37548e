// DistributedDataParallel: every rank holds everything, gradients are averaged (torch/nn/parallel/distributed.py).
#pragma once

#include <memory>
#include <vector>

#include "shard/reducer.h"
#include "shard/sharding_runtime.h"

namespace qlp {

/// With find_unused_parameters off, as the Trainer sets it for models that checkpoint.
class DdpRuntime final : public ShardingRuntime {
 public:
  explicit DdpRuntime(const ReducerOptions& options) : options_(options) {}

  void prepare(Context& ctx, CausalLm& model) override;
  void begin_micro_step(Context& ctx, bool sync) override;
  void begin_stage_forward(Context&) override { reducer_->set_sync(false); }
  void begin_stage_backward(Context&, bool last) override { reducer_->set_sync(last); }
  /// The module's buffers are broadcast first.
  CausalLmOutput forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                         const Tensor& num_items, const RunOptions& options) override;

 private:
  ReducerOptions options_;
  std::vector<Tensor> module_buffers_;
  bool syncs_buffers_ = true;  ///< require_forward_param_sync: after a forward pass without no_sync()
  std::unique_ptr<Reducer> reducer_;
};

}  // namespace qlp
