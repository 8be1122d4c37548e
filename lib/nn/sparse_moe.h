// Mixtures of experts as transformers 5 writes them: MixtralSparseMoeBlock and its relatives.
#pragma once

#include <memory>

#include "nn/feed_forward.h"
#include "nn/fused_experts.h"
#include "nn/router.h"
#include "nn/shared_expert.h"

namespace qlp {

struct SparseMoeHabits {
  bool router_first = false;   ///< in the order of registration (Qwen3 has the experts first)
  bool gives_weights = false;  ///< those of the router, beside the result (GPT-OSS)
};

class SparseMoe final : public FeedForward {
 public:
  SparseMoe(std::string name, std::unique_ptr<TopKRouter> router, std::unique_ptr<FusedExperts> experts,
            SharedExpert shared, SparseMoeHabits habits);
  Tensor forward(Context& ctx, const Tensor& x, Tensor& routed) override;

 private:
  std::unique_ptr<TopKRouter> router_;
  std::unique_ptr<FusedExperts> experts_;
  SharedExpert shared_;
  bool gives_weights_;
};

}  // namespace qlp
