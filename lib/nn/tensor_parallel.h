// How a linear layer is shared by several ranks (transformers distributed/tensor_parallel.py, 5.24).
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/work.h"

namespace qlp {

enum class TpStyle : std::uint8_t {
  none,
  colwise,                ///< output features are cut; the input is whole on each rank
  colwise_gather_output,  ///< the same, and the outputs are joined
  rowwise,                ///< input features are cut, and so is the input; the outputs are summed
  rowwise_split_input,    ///< the same, of an input that is whole on each rank
};

struct TensorParallel {
  TpStyle style = TpStyle::none;
  std::int64_t ranks = 1;

  RankGroup group() const { return {MeshAxis::tp, ranks}; }
  /// Features on this rank, of those of the whole layer.
  std::int64_t in(std::int64_t features) const { return cuts_input() ? features / ranks : features; }
  std::int64_t out(std::int64_t features) const { return cuts_output() ? features / ranks : features; }
  bool cuts_input() const { return style == TpStyle::rowwise || style == TpStyle::rowwise_split_input; }
  bool cuts_output() const { return style == TpStyle::colwise || style == TpStyle::colwise_gather_output; }
};

/// What happens to the input and to the output of the layer.
Tensor enter(Context& ctx, const Tensor& x, const TensorParallel& parallel);
Tensor leave(Context& ctx, Tensor y, const TensorParallel& parallel);

}  // namespace qlp
