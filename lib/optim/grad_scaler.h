// torch.amp.GradScaler: the loss is scaled so that gradients in float16 do not vanish, and gradients are scaled back.
#pragma once

#include "autograd/node.h"

namespace qlp {

class GradScaler {
 public:
  /// The loss [] times the scale, which is made on the first call.
  Tensor scale(Context& ctx, const Tensor& loss);
  /// Before an optimizer step: gradients are scaled back in place, under a flag for those that are not finite.
  void unscale(Context& ctx);
  /// After it.
  void update() { found_inf_.reset(); }

 private:
  Tensor scale_, growth_tracker_, found_inf_;
};

}  // namespace qlp
