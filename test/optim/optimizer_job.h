// Parameters with gradients on a dry device, and what a step of their optimizer does to its memory.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "autograd/node.h"
#include "optim/optimizer.h"
#include "quant/recorder.h"

namespace qlp::test {

struct OptimizerJob {
  DryDevice dry;
  std::vector<Tensor> parameters;
  std::unique_ptr<Optimizer> optimizer;

  explicit OptimizerJob(const std::vector<std::pair<Shape, DType>>& tensors) {
    for (const auto& [shape, dtype] : tensors) {
      parameters.push_back(dry.tensor(shape, dtype));
      set_grad(parameters.back(), dry.tensor(shape, dtype));
    }
  }
  /// Groups as indices into the parameters. Gives what the constructor takes.
  Events make(const OptimizerKind& kind, const std::vector<std::vector<std::size_t>>& groups,
              const OptimizerSetup& setup = {}) {
    std::vector<ParameterGroup> tensors;
    for (const auto& group : groups) {
      tensors.emplace_back();
      for (const std::size_t i : group) tensors.back().push_back(parameters[i]);
    }
    optimizer = make_optimizer(dry.ctx, kind, std::move(tensors), setup);
    return dry.recorder.take();
  }
  Events step() {
    optimizer->step(dry.ctx);
    return dry.recorder.take();
  }
};

}  // namespace qlp::test
