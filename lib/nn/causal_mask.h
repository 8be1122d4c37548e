// The attention masks that a model makes before its layers run, as transformers' masking code writes them.
#pragma once

#include <optional>

#include "nn/behaviour.h"
#include "tensor/context.h"

namespace qlp {

struct MaskRequest {
  std::int64_t batch = 1, rows = 0;
  std::optional<std::int64_t> window = {};  ///< of a sliding mask; none: all that came before
  bool additive = false;                    ///< of the dtype below; else boolean where the version has that
  DType dtype = DType::float32;             ///< of the residual stream
  bool extra_column = false;                ///< `triangular` and `windowed` count one token more than there are
};

/// [batch, 1, rows, rows]; where batches share one, they are an expanded view of it.
Tensor make_causal_mask(Context& ctx, const MaskRequest& request, MaskMaker maker);

/// Gemma 2 of transformers 4.48 narrows the causal mask to the window anew in every layer that slides.
struct LayerMask {
  Tensor window, mask;
};
LayerMask narrow_to_window(Context& ctx, const Tensor& mask, std::int64_t window);

}  // namespace qlp
