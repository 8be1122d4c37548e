// The part of a decoder layer behind the attention: a gated MLP, or a mixture of experts.
#pragma once

#include "nn/module.h"

namespace qlp {

class FeedForward : public Module {
 public:
  using Module::Module;
  /// x [B, S, H]
  virtual Tensor forward(Context& ctx, const Tensor& x) = 0;
};

}  // namespace qlp
