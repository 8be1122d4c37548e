// The gated feed-forward block: down(act(gate(x)) * up(x)).
#pragma once

#include <memory>

#include "nn/feed_forward.h"
#include "nn/liger.h"
#include "nn/linear.h"

namespace qlp {

/// gate and up, or both in one (Phi-3).
struct MlpProjections {
  std::unique_ptr<LinearModule> gate, up, gate_up, down;
  bool down_before_up = false;  ///< in the order of registration (Mixtral's w1, w2, w3)
};

class GatedMlp final : public FeedForward {
 public:
  /// `liger`: activation and product are one kernel.
  GatedMlp(std::string name, Activation activation, MlpProjections projections, bool liger);
  Tensor forward(Context& ctx, const Tensor& x, Tensor& routed) override;
  /// x [..., H]
  Tensor forward(Context& ctx, const Tensor& x);
  MlpProjections& projections() { return projections_; }

 private:
  Tensor activate(Context& ctx, const Tensor& x);
  Activation activation_;
  MlpProjections projections_;
  bool liger_;
};

}  // namespace qlp
