// Norms over the last dimension, as the families of transformers write them: root mean squares, but for Cohere's.
#pragma once

#include <optional>

#include "nn/liger.h"
#include "nn/module.h"
#include "tensor/work.h"

namespace qlp {

enum class NormKind : std::uint8_t {
  llama,   ///< weight * normalised.to(input dtype)
  olmo2,   ///< (weight * normalised).to(input dtype)
  gemma,   ///< (normalised * (1 + weight.float())).to(input dtype)
  cohere,  ///< (weight.float() * normalised).to(input dtype), the mean taken off before
};

class RmsNorm final : public Module {
 public:
  /// `liger`: how the norm was replaced, if it was.
  RmsNorm(std::string name, std::int64_t width, NormKind kind, double eps, std::optional<LigerNorm> liger);
  /// x [..., width]
  Tensor forward(Context& ctx, const Tensor& x);
  /// Trains a copy of the weight; the original stays, frozen (PEFT's modules_to_save).
  void train_copy();
  /// Each rank of the group norms other heads: what each has of the gradient is summed where it is accumulated.
  void sum_gradients(const RankGroup& group) { group_ = group; }

 private:
  void hook_gain(const Context& ctx);
  Tensor gemma(Context& ctx, const Tensor& x);
  Tensor cohere(Context& ctx, const Tensor& x);
  Parameter* weight_;
  NormKind kind_;
  double eps_;
  std::optional<LigerNorm> liger_;
  RankGroup group_;
  Tensor hooked_;  ///< the gain whose gradient is summed
};

}  // namespace qlp
