// DeepSpeedZeroOptimizer: ZeRO-1 and 2 around an optimizer that is given this rank's float32 partitions
// (deepspeed/runtime/zero/stage_1_and_2.py, 0.18.3).
#pragma once

#include <memory>
#include <vector>

#include "optim/optimizer.h"
#include "shard/sharding_runtime.h"
#include "shard/zero_gradients.h"
#include "tensor/compute.h"

namespace qlp {

class ZeroOptimizer {
 public:
  /// `groups`: of the optimizer, none empty.
  ZeroOptimizer(Context& ctx, std::vector<std::vector<Parameter*>> groups, const ZeroOptions& options);

  /// The partition of each group, under the group's first parameter.
  std::vector<TrainedTensor> trained() const;
  const std::vector<std::unique_ptr<ZeroGroup>>& groups() const { return groups_; }
  ZeroGradients& gradients() { return *gradients_; }
  double loss_scale() const { return loss_scale_.value(); }
  bool skipped() const { return loss_scale_.overflowed(); }
  double grad_norm(Context& ctx) const { return global_norm_.defined() ? item(ctx, global_norm_) : host_norm_; }
  /// Norm, clipping and the optimizer's step, group by group; then the parameters are gathered in place. Where a
  /// gradient has overflowed nothing of that.
  void step(Context& ctx, Optimizer& optimizer);

 private:
  /// The norm of the gradients as they are, scaled: on the device, or with offload on the host.
  struct ScaledNorm {
    Tensor on_device;
    double on_host = 0;
  };

  bool has_overflow(Context& ctx) const;
  void drop_gradients();
  ScaledNorm norm(Context& ctx) const;
  double offloaded_norm(Context& ctx) const;
  void update(Context& ctx, std::size_t index, const ScaledNorm& norm, Optimizer& optimizer);
  void link_state(Context& ctx, const Optimizer& optimizer);
  Tensor join_gradients(Context& ctx, ZeroGroup& group) const;

  ZeroOptions options_;
  std::vector<std::unique_ptr<ZeroGroup>> groups_;
  std::unique_ptr<ZeroGradients> gradients_;
  ZeroLossScale loss_scale_;
  Tensor global_norm_;    ///< _global_grad_norm
  double host_norm_ = 0;  ///< the same with offload
  bool linked_ = false;
  std::vector<Tensor> fragments_;  ///< what slices of the optimizer's state hold beside it
};

}  // namespace qlp
