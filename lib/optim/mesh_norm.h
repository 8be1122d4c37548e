// Clipping where gradients are parts of tensors on device meshes (transformers trainer.py, _mixed_mesh_grad_norm, 5.24;
// torch/distributed/tensor/_ops/_math_ops.py, _NormPartial).
#pragma once

#include <vector>

#include "tensor/context.h"
#include "tensor/work.h"

namespace qlp {

/// Trained tensors of one mesh, and its axes over which each rank has a part of them.
struct MeshTensors {
  std::vector<Tensor> tensors;
  std::vector<RankGroup> axes;
};

/// A partial norm becomes one of all ranks: for each axis powers are summed, and the root is taken.
Tensor summed_over_ranks(Context& ctx, Tensor norm, const std::vector<RankGroup>& axes);

/// A norm for each mesh, then that of those norms, by which the gradients are scaled in place.
Tensor clip_over_meshes(Context& ctx, const std::vector<MeshTensors>& meshes, double max_norm);

/// The norm over the stages of a pipeline, each of which has the gradients of its own layers, or this rank's parts of
/// them (torchtitan distributed/utils.py, clip_grad_norm_).
Tensor clip_over_stages(Context& ctx, const MeshTensors& own, const RankGroup& stages, double max_norm);

}  // namespace qlp
