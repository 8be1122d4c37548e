// A mixture whose experts are stacks: GptOssMLP of transformers 4 (4.55 to 4.57), which trains them one by one, each on
// the tokens that are sent to it, and evaluates all of them on all tokens at once.
#pragma once

#include <memory>

#include "nn/clamped_gate.h"
#include "nn/feed_forward.h"
#include "nn/fused_experts.h"
#include "nn/router.h"

namespace qlp {

class LoopedExperts final : public Module {
 public:
  LoopedExperts(std::string name, const ExpertsShape& shape);
  /// hidden [T, H]; scores [T, E] are the weights of all experts, 0 of those that a token is not sent to.
  Tensor forward(Context& ctx, const Tensor& hidden, const Tensor& indices, const Tensor& scores);

 private:
  /// What Python's names hold until the next expert gives them anew.
  struct Names {
    Tensor places, state, gate_up, out, weighted;
    ClampedGate gate;
  };
  Tensor loop(Context& ctx, const Tensor& hidden, const Tensor& indices, const Tensor& scores);
  Tensor run(Context& ctx, std::int64_t expert, Names& names);
  Tensor run_all(Context& ctx, const Tensor& hidden, const Tensor& scores);

  Parameter *gate_up_, *gate_up_bias_;  ///< [E, H, 2 I], [E, 2 I]
  Parameter *down_, *down_bias_;        ///< [E, I, H], [E, H]
  ExpertsShape shape_;
};

class LoopedMoe final : public FeedForward {
 public:
  /// Tokens go to the experts evenly, as in ListedMoe.
  LoopedMoe(std::string name, std::unique_ptr<TopKRouter> router, std::unique_ptr<LoopedExperts> experts);
  Tensor forward(Context& ctx, const Tensor& x, Tensor& routed) override;

 private:
  std::unique_ptr<TopKRouter> router_;
  std::unique_ptr<LoopedExperts> experts_;
};

}  // namespace qlp
