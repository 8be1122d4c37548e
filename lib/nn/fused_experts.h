// All experts of a layer as two stacks of matrices (transformers 5: MixtralExperts and its relatives, GptOssExperts).
#pragma once

#include <memory>
#include <optional>

#include "nn/expert_dispatch.h"

namespace qlp {

struct ExpertsShape {
  std::int64_t experts = 0, hidden = 0, intermediate = 0;
  bool biased = false;  ///< GPT-OSS: stacks of [in, out] with biases, and a gate of its own
};

class FusedExperts final : public Module {
 public:
  FusedExperts(std::string name, const ExpertsShape& shape);
  /// hidden [T, H]: every token goes through its experts, which share one kernel (grouped_mm_experts_forward in
  /// transformers/integrations/moe.py). No size depends on where the tokens go.
  Tensor forward(Context& ctx, const Tensor& hidden, const Routing& routing);
  /// Each expert's features are cut over these ranks, and `shape` is that of a rank (moe_tp_experts).
  void share(const RankGroup& group);
  /// The experts are those of a rank, and tokens come and go (ep_dispatch_experts).
  void spread(const ExpertParallel& parallel);
  /// Adapters on the stacks; gate and up, which are one stack, are adapted together.
  void adapt(std::optional<std::int64_t> gate_up_r, std::optional<std::int64_t> down_r, double scaling);

 private:
  Tensor dispatch(Context& ctx, const Tensor& hidden, const Routing& routing);
  Tensor run(Context& ctx, const Tensor& hidden, const Routing& routing, const ParamLora::Factors& gate_up,
             const ParamLora::Factors& down);

  Tensor activate(Context& ctx, const Tensor& states) const;

  Parameter *gate_up_, *gate_up_bias_ = nullptr;  ///< [E, 2 I, H], or [E, H, 2 I] and [E, 2 I]
  Parameter *down_, *down_bias_ = nullptr;        ///< [E, H, I], or [E, I, H] and [E, H]
  ExpertsShape shape_;
  RankGroup group_;  ///< that shares each expert
  ExpertParallel parallel_;
  std::unique_ptr<ParamLora> gate_up_lora_, down_lora_;
};

}  // namespace qlp
