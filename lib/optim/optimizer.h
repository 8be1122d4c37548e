// Optimizers: what they keep per parameter, and what a step takes for its time (torch/optim, torch 2.4 to 2.14).
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/context.h"

namespace qlp {

enum class OptimizerKind : std::uint8_t { adamw_foreach, adamw_fused, adamw_forloop, sgd };

/// Parameters that share their settings; transformers makes two groups, with and without weight decay.
using ParameterGroup = std::vector<Tensor>;

class TorchOptimizer {
 public:
  TorchOptimizer(OptimizerKind kind, std::vector<ParameterGroup> groups);

  /// One step on the parameters that have a gradient.
  void step(Context& ctx);
  const std::vector<ParameterGroup>& groups() const { return groups_; }

 private:
  struct State {
    Tensor step, exp_avg, exp_avg_sq;
  };
  void init_state(Context& ctx, const Tensor& parameter, State& state) const;
  static void foreach_update(Context& ctx, const std::vector<const State*>& states);
  static void forloop_update(Context& ctx, const std::vector<const State*>& states);

  OptimizerKind kind_;
  std::vector<ParameterGroup> groups_;
  std::vector<std::vector<State>> states_;
};

}  // namespace qlp
