#include "nn/causal_mask.h"

#include <limits>

#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// torch.finfo(dtype).min
double smallest_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return -65504;
    case DType::bfloat16:
      return -0x1.fep127;
    default:
      return std::numeric_limits<float>::lowest();
  }
}

/// A mask of rows and columns, seen by every batch; columns past the last row are cut off.
Tensor shared(const Tensor& mask, const MaskRequest& request) {
  const std::int64_t columns = mask.size(-1);
  return mask.strided({request.batch, 1, request.rows, request.rows}, {0, 0, columns, 1});
}

/// _prepare_4d_causal_attention_mask_with_cache_position in the models of transformers 4.48.
Tensor updated(Context& ctx, const MaskRequest& request, bool windowed) {
  const std::int64_t rows = request.rows, columns = rows + (request.extra_column ? 1 : 0);
  Tensor mask = empty(ctx, {rows, columns}, request.dtype, Op::empty);
  if (!windowed) mask = empty(ctx, {rows, columns}, request.dtype, Op::clone);  // triu
  fill_causal_band(ctx, mask, request.window.value_or(0), 0, smallest_of(request.dtype));
  Tensor places = empty(ctx, {columns}, DType::int64, Op::arange);
  Tensor ahead = empty(ctx, {rows, columns}, DType::boolean, Op::ne);
  places.reset();
  if (request.window) {
    places = empty(ctx, {columns}, DType::int64, Op::arange);
    Tensor first = empty(ctx, {rows, 1}, DType::int64, Op::sub);
    const Tensor behind = empty(ctx, {rows, columns}, DType::boolean, Op::ne);
    places.reset(), first.reset(), ahead.reset();
  }
  return shared(mask, request);
}

/// The boolean mask of masking_utils.py: comparisons of positions, combined one by one.
Tensor compared(Context& ctx, const MaskRequest& request, bool mapped) {
  const std::int64_t rows = request.rows;
  const auto arange = [&](std::int64_t n) { return empty(ctx, {n}, DType::int64, Op::arange); };
  const auto square = [&] { return empty(ctx, {rows, rows}, DType::boolean, Op::ne); };
  Tensor batches, heads, queries, keys;
  if (mapped) {
    keys = arange(rows), batches = arange(request.batch), heads = arange(1);
  } else {
    batches = arange(request.batch), heads = arange(1);
    const auto shifted = [&] {
      const Tensor from_zero = arange(rows);
      return empty(ctx, {rows}, DType::int64, Op::add);
    };
    queries = shifted(), keys = shifted();
  }
  Tensor mask;
  if (request.window) {
    Tensor all = empty(ctx, {mapped ? rows : 1}, DType::boolean, Op::ones_like);
    Tensor within;
    {
      Tensor first = empty(ctx, {rows}, DType::int64, Op::sub);
      Tensor ahead = square();
      first.reset();
      within = square();
      ahead.reset();
    }
    all.reset();
    const Tensor causal = square();
    mask = square();
  } else {
    mask = square();
  }
  fill_causal_band(ctx, mask, request.window.value_or(0), 1, 0);
  if (mapped) keys.reset();
  batches.reset(), heads.reset(), queries.reset(), keys.reset();
  return shared(mask, request);
}

/// eager_mask in masking_utils.py: torch.where(mask, 0, smallest).
Tensor additive(Context& ctx, const Tensor& mask, const MaskRequest& request) {
  const Tensor zero = empty(ctx, {}, request.dtype, Op::where);
  const Tensor smallest = empty(ctx, {}, request.dtype, Op::where);
  Tensor bias = empty(ctx, mask.shape(), request.dtype, Op::where);
  compute(ctx, Unary::select, bias, mask, 0, smallest_of(request.dtype));
  return bias;
}

}  // namespace

Tensor make_causal_mask(Context& ctx, const MaskRequest& request, MaskMaker maker) {
  const Scoped grad_mode(ctx.grad_enabled, false);
  if (maker == MaskMaker::triangular || maker == MaskMaker::windowed)
    return updated(ctx, request, maker == MaskMaker::windowed);
  const Tensor mask = compared(ctx, request, maker == MaskMaker::mapped);
  return request.additive ? additive(ctx, mask, request) : mask;
}

LayerMask narrow_to_window(Context& ctx, const Tensor& mask, std::int64_t window) {
  LayerMask layer;
  {
    const Tensor ones = empty(ctx, mask.shape(), DType::boolean, Op::ones_like);
    layer.window = empty(ctx, mask.shape(), DType::boolean, Op::clone);  // tril
  }
  const Tensor smallest = empty(ctx, {}, mask.dtype(), Op::where);
  layer.mask = empty(ctx, mask.shape(), mask.dtype(), Op::where);
  fill_causal_band(ctx, layer.mask, window, 0, smallest_of(mask.dtype()));
  return layer;
}

}  // namespace qlp
