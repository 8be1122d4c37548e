// The part of a model that one rank holds.
#pragma once

#include <cstdint>

#include "autograd/ring_attention.h"

namespace qlp {

/// Tensor parallelism cuts each layer, pipeline parallelism the list of layers, expert parallelism the experts of each
/// layer; ranks of a ring share each sequence.
struct ModelSlice {
  std::int64_t tp = 1;  ///< ranks that share each layer
  std::int64_t stages = 1;
  std::int64_t stage = 0;
  Ring ring = {};
  std::int64_t ep = 1;  ///< ranks that share the experts of each layer

  bool first() const { return stage == 0; }
  bool last() const { return stage == stages - 1; }
  /// The layers of the stage, of `layers`: the first stages have one more where they do not divide (transformers
  /// distributed/pipeline_parallel.py, layer_range_for_rank).
  std::int64_t first_layer(std::int64_t layers) const {
    const std::int64_t rest = layers % stages;
    return stage * (layers / stages) + (stage < rest ? stage : rest);
  }
  std::int64_t end_layer(std::int64_t layers) const {
    ModelSlice next = *this;
    ++next.stage;
    return next.first_layer(layers);
  }
  friend bool operator==(const ModelSlice&, const ModelSlice&) = default;
};

}  // namespace qlp
