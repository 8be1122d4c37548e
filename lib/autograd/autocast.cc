#include "autograd/autocast.h"

namespace qlp {

Tensor autocast_low(Context& ctx, const Tensor& operand) {
  Autocast& autocast = ctx.autocast;
  if (!autocast.enabled || !operand.defined() || operand.dtype() == autocast.dtype || !is_floating(operand.dtype()))
    return operand;
  const bool cached =
      operand.dtype() == DType::float32 && operand.requires_grad() && is_leaf(operand) && !operand.impl()->is_view;
  if (!cached) return to(ctx, operand, autocast.dtype);
  const auto [place, is_new] = autocast.cached.try_emplace(operand.impl(), autocast.cache.size());
  if (is_new) autocast.cache.push_back(to(ctx, operand, autocast.dtype));
  return autocast.cache[place->second];
}

Tensor autocast_fp32(Context& ctx, const Tensor& operand) {
  if (!ctx.autocast.enabled || !is_floating(operand.dtype())) return operand;
  return to(ctx, operand, DType::float32);
}

AutocastRegion::AutocastRegion(Context& ctx, bool enabled) : ctx_(ctx), was_enabled_(ctx.autocast.enabled) {
  ++ctx.autocast.depth;
  ctx.autocast.enabled = enabled;
}

AutocastRegion::~AutocastRegion() {
  ctx_.autocast.enabled = was_enabled_;
  if (--ctx_.autocast.depth == 0) {
    // Newest first, as the hash map that PyTorch keeps them in happens to do for small numbers.
    while (!ctx_.autocast.cache.empty()) ctx_.autocast.cache.pop_back();
    ctx_.autocast.cached.clear();
  }
}

}  // namespace qlp
