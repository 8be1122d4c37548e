// The optimizer of ZeRO stage 3: this rank's parts of the trained parameters in one flat buffer, master weights and
// states of them by sub groups (deepspeed/runtime/zero/stage3.py, 0.18.3).
#pragma once

#include <memory>
#include <vector>

#include "optim/optimizer.h"
#include "shard/sharding_runtime.h"
#include "shard/zero3_coordinator.h"
#include "shard/zero3_gradients.h"
#include "tensor/compute.h"

namespace qlp {

class Zero3Optimizer {
 public:
  /// `groups` are the optimizer's parameter groups.
  Zero3Optimizer(Context& ctx, const std::vector<std::vector<Zero3Param*>>& groups, Zero3Coordinator& coordinator,
                 const std::vector<Zero3Param*>& all, const Zero3Options& options);

  /// The master weights, each under the first parameter of its sub group.
  std::vector<TrainedTensor> trained() const;
  Zero3Gradients& gradients() { return *gradients_; }
  double loss_scale() const { return loss_scale_.value(); }
  bool skipped() const { return loss_scale_.overflowed(); }
  double grad_norm(Context& ctx) const {
    return norm_.defined() ? item(ctx, norm_) : scaled_host_norm_ / loss_scale_of_norm_;
  }
  /// Clips, updates the parts of this rank, and gathers what persists. Where a gradient has overflowed nothing of that.
  void step(Context& ctx, Optimizer& optimizer);
  /// After a step, and after a model was saved.
  void gather_persistent(Context& ctx);
  /// What gatherings that nobody waits for hold goes with the first collective after c10d's watchdog has looked, which
  /// it does every 100 ms (ProcessGroupNCCL.cpp, shelvesToUnstash_): a race, which is taken to be over after the step.
  void drop_unwaited() { unwaited_.clear(); }

 private:
  void cut_into_sub_groups(const std::vector<Zero3Param*>& group);
  void flatten_partitions(Context& ctx, const std::vector<std::vector<Zero3Param*>>& groups) const;
  void make_masters(Context& ctx);
  void init_gradients(Context& ctx);
  bool has_overflow(Context& ctx);
  void take_norm(Context& ctx);
  void prepare_gradient(Context& ctx, std::size_t group);
  void clip(Context& ctx, const Tensor& gradient) const;
  void put_back(Context& ctx, std::size_t group) const;

  Zero3Options options_;
  Zero3Coordinator& coordinator_;
  std::vector<Zero3Param*> persistent_;
  std::vector<std::vector<Zero3Param*>> groups_;  ///< sub groups
  DType dtype_;                                   ///< of the parameters
  Tensor nan_tracker_;
  std::vector<Tensor> masters_;
  std::vector<Tensor> host_gradients_;  ///< with offload: of the master weights
  std::unique_ptr<Zero3Gradients> gradients_;
  ZeroLossScale loss_scale_;
  Tensor scaled_norm_, norm_;
  double scaled_host_norm_ = 0, loss_scale_of_norm_ = 1;  ///< with offload
  std::vector<Tensor> unwaited_;
};

}  // namespace qlp
