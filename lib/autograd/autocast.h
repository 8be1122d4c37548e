// torch.autocast's casts of operands (ATen/autocast_mode.cpp).
#pragma once

#include "autograd/pointwise.h"

namespace qlp {

/// The operand of an operation that runs in the low precision dtype: cast from float32 if autocast is on. The cast of a
/// trainable leaf is kept until the outermost region ends.
Tensor autocast_low(Context& ctx, const Tensor& operand);
/// The operand of an operation that runs in float32 under autocast.
Tensor autocast_fp32(Context& ctx, const Tensor& operand);

/// with torch.autocast(...): the casts of weights go when the outermost region is left.
class AutocastRegion {
 public:
  AutocastRegion(Context& ctx, bool enabled);
  ~AutocastRegion();
  AutocastRegion(const AutocastRegion&) = delete;
  AutocastRegion& operator=(const AutocastRegion&) = delete;

 private:
  Context& ctx_;
  bool was_enabled_;
};

}  // namespace qlp
