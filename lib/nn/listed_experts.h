// Mixtures of experts as transformers 4 writes them: a list of MLPs that run one by one, each on the tokens that are
// sent to it (MixtralSparseMoeBlock, Qwen3MoeSparseMoeBlock of 4.48 to 4.57).
#pragma once

#include <memory>
#include <vector>

#include "nn/mlp.h"
#include "nn/router.h"
#include "nn/shared_expert.h"

namespace qlp {

struct ListedHabits {
  bool looks_up = false;  ///< the host asks which experts any token goes to, and leaves the others out
  bool leaf = false;      ///< ZeRO-3 gathers all of it at once
};

class ListedMoe final : public FeedForward {
 public:
  ListedMoe(std::string name, const RouterShape& shape, std::unique_ptr<LinearModule> gate,
            std::vector<std::unique_ptr<GatedMlp>> experts, SharedExpert shared, ListedHabits habits);
  /// Tokens go to the experts evenly: of all pairs of a token and an expert each gets as many, the first ones one more
  /// where they do not divide, in a run that computes too. What is kept for the backward pass does not depend on it,
  /// the largest expert does.
  Tensor forward(Context& ctx, const Tensor& x, Tensor& routed) override;

 private:
  void look_up_experts(Context& ctx, const Tensor& mask) const;

  RouterShape shape_;
  std::unique_ptr<LinearModule> gate_;
  std::vector<std::unique_ptr<GatedMlp>> experts_;
  SharedExpert shared_;
  bool looks_up_;
};

}  // namespace qlp
