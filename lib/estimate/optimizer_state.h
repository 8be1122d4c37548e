// What an optimizer keeps on the GPU, in closed form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/dtype.h"
#include "optim/optimizer_kind.h"

namespace qlp {

/// A tensor that is trained, as the optimizer gets it.
struct TrainedShape {
  std::int64_t rows = 0, width = 1;
  std::int64_t whole_rows = rows;  ///< of all ranks
  bool vector = true;              ///< of one dimension
  DType dtype = DType::float32;
  bool embedding = false;  ///< the weight of an nn.Embedding
  bool projected = false;  ///< by GaLore or APOLLO, to fewer rows or columns
  bool has_gradient = true;
  std::int64_t slices = 0;         ///< of its state, which DeepSpeed keeps
  std::optional<DType> made_as{};  ///< its dtype when the optimizer was made, if that was another

  std::int64_t numel() const { return rows * width; }
};

struct OptimizerState {
  Bytes allocated;  ///< from PyTorch's allocator, as tensors ask for it
  Bytes managed;    ///< in memory that CUDA moves between GPU and host
};

/// After the first step, of an optimizer that was given all of these. `start`: of Adagrad.
OptimizerState optimizer_state(const OptimizerKind& kind, const OptimizerBehaviour& behaviour,
                               std::span<const TrainedShape> given, AdagradStart start);

}  // namespace qlp
