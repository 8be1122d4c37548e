// Root mean square norms, as the families of transformers write them.
#pragma once

#include "nn/module.h"

namespace qlp {

enum class NormKind : std::uint8_t {
  llama,  ///< weight * normalised.to(input dtype)
  olmo2,  ///< (weight * normalised).to(input dtype)
  gemma,  ///< (normalised * (1 + weight.float())).to(input dtype)
};

class RmsNorm final : public Module {
 public:
  RmsNorm(std::string name, std::int64_t width, NormKind kind);
  /// x [..., width]
  Tensor forward(Context& ctx, const Tensor& x);

 private:
  Tensor gemma(Context& ctx, const Tensor& x);
  Parameter* weight_;
  NormKind kind_;
};

}  // namespace qlp
