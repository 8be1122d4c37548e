// torch.amp.GradScaler: the loss is scaled so that gradients in float16 do not vanish, and gradients are scaled back.
#pragma once

#include <vector>

#include "autograd/node.h"
#include "tensor/work.h"

namespace qlp {

class GradScaler {
 public:
  /// `sharing`: ranks that each have a part of the gradients, and skip a step together.
  explicit GradScaler(const RankGroup& sharing) : sharing_(sharing) {}
  /// The scale, if it is not there yet.
  void begin(Context& ctx);
  /// The loss [] times the scale, which is made on the first call.
  Tensor scale(Context& ctx, const Tensor& loss);
  /// Before an optimizer step: gradients of `parameters` are scaled back in place, under a flag for those that are not
  /// finite.
  void unscale(Context& ctx, const std::vector<Tensor>& parameters);
  /// Whether one was not: then the optimizer makes no step.
  bool found_inf(Context& ctx) const;
  /// After it: the scale is halved where one was, and doubled after as many steps without.
  void update(Context& ctx);

 private:
  RankGroup sharing_;
  std::int64_t good_steps_ = 0;
  Tensor scale_, growth_tracker_, found_inf_;
};

}  // namespace qlp
