// A parameter of a model: what it is, and the tensor that stands for it now.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/dtype.h"
#include "base/shape.h"
#include "nn/parameter_role.h"
#include "quant/quant_state.h"
#include "tensor/tensor.h"
#include "tensor/work.h"

namespace qlp {

/// The mesh over which a layer is cut, beside that of data parallelism.
enum class LayerMesh : std::uint8_t { none, tp, ep };

struct Parameter {
  std::string name;  ///< fully qualified
  ParamRole role = ParamRole::base_weight;
  Shape shape;  ///< of the unquantized weight
  bool trainable = true;
  bool quantize = false;              ///< stored in 4 or 8 bits once loaded
  LayerMesh mesh = LayerMesh::none;   ///< this is a rank's part of a tensor on that mesh, or all of it (one part)
  int cut_dim = 0;                    ///< and the dimension that is cut there,
  std::int64_t parts = 1;             ///< on so many ranks
  std::int64_t fused_parts = 0;       ///< of a stack of experts: how many projections it joins
  Tensor tensor;                      ///< what the forward pass reads: whole, a view of a flat parameter, or a shard
  std::unique_ptr<QuantState> quant;  ///< of a quantized one

  std::int64_t numel() const { return shape.numel(); }
};

/// The ranks that have the parts of a parameter.
inline RankGroup mesh_group(const Parameter& parameter) {
  return {parameter.mesh == LayerMesh::ep ? MeshAxis::ep : MeshAxis::tp, parameter.parts};
}

}  // namespace qlp
