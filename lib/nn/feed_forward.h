// The part of a decoder layer behind the attention: a gated MLP, or a mixture of experts.
#pragma once

#include "nn/module.h"

namespace qlp {

class FeedForward : public Module {
 public:
  using Module::Module;
  /// x [B, S, H]. `routed`: what the classes of some mixtures give beside, of their router; a name of the layer holds
  /// it.
  virtual Tensor forward(Context& ctx, const Tensor& x, Tensor& routed) = 0;
};

}  // namespace qlp
