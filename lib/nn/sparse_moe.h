// Mixtures of experts as transformers 5 writes them: MixtralSparseMoeBlock, Qwen3MoeSparseMoeBlock.
#pragma once

#include <memory>

#include "nn/feed_forward.h"
#include "nn/fused_experts.h"
#include "nn/router.h"

namespace qlp {

class SparseMoe final : public FeedForward {
 public:
  /// `router_first`: in the order of registration (Mixtral; Qwen3 has the experts first).
  SparseMoe(std::string name, std::unique_ptr<TopKRouter> router, std::unique_ptr<FusedExperts> experts,
            bool router_first);
  Tensor forward(Context& ctx, const Tensor& x) override;

 private:
  std::unique_ptr<TopKRouter> router_;
  std::unique_ptr<FusedExperts> experts_;
};

}  // namespace qlp
