// Gradient checkpointing: a region keeps its input and runs again in the backward pass (torch/utils/checkpoint.py).
#pragma once

#include <functional>
#include <stdexcept>

#include "autograd/node.h"

namespace qlp {

/// What is checkpointed; it may keep more tensors by value.
using Region = std::function<Tensor(Context&, const Tensor&)>;

/// use_reentrant=True: runs without a graph, and in the backward pass once more with one, from a detached input, with a
/// backward pass of its own.
Tensor checkpoint_reentrant(Context& ctx, const Region& region, const Tensor& input);

/// Thrown in the backward pass where the second run of a region does not save what the first did (torch's
/// CheckpointError).
class RecomputationDiffers : public std::runtime_error {
 public:
  RecomputationDiffers() : std::runtime_error("a checkpointed region saves other tensors when it runs again") {}
};

/// use_reentrant=False: what the region saves is replaced by holders; the first one that is opened runs the region
/// again, up to the last tensor that is needed.
Tensor checkpoint_nonreentrant(Context& ctx, const Region& region, const Tensor& input);

}  // namespace qlp
