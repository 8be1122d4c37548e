#include "optim/optimizer.h"

#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "autograd/node.h"
#include "quant/recorder.h"

using namespace qlp;
using test::DryDevice;
using test::Events;

namespace {

struct Job {
  DryDevice dry;
  std::vector<Tensor> parameters;

  explicit Job(const std::vector<std::pair<std::int64_t, DType>>& tensors) {
    for (const auto& [numel, dtype] : tensors) {
      parameters.push_back(dry.tensor({numel}, dtype));
      set_grad(parameters.back(), dry.tensor({numel}, dtype));
    }
  }
  Events step(TorchOptimizer& optimizer) {
    dry.recorder.take();
    optimizer.step(dry.ctx);
    return dry.recorder.take();
  }
};

}  // namespace

TEST_CASE("optim/optimizer: AdamW by lists keeps two tensors a parameter, and takes the roots of a group at once") {
  Job job({{100, DType::float32}, {50, DType::float32}, {10, DType::float32}});
  TorchOptimizer optimizer(OptimizerKind::adamw_foreach, {{job.parameters[0], job.parameters[1]}, {job.parameters[2]}});
  CHECK(job.step(optimizer) == Events{400, 400, 200, 200, 400, 200, -400, -200, 40, 40, 40, -40});
  CHECK(job.step(optimizer) == Events{400, 200, -400, -200, 40, -40});
}

TEST_CASE("optim/optimizer: the list of one dtype stays beside that of the next; the last dtype comes first") {
  Job job({{100, DType::bfloat16}, {10, DType::float32}});
  TorchOptimizer optimizer(OptimizerKind::adamw_foreach, {job.parameters});
  job.step(optimizer);
  CHECK(job.step(optimizer) == Events{40, 200, -40, -200});
}

TEST_CASE("optim/optimizer: the fused AdamW keeps its step count on the device and takes nothing more") {
  Job job({{100, DType::bfloat16}});
  TorchOptimizer optimizer(OptimizerKind::adamw_fused, {job.parameters});
  CHECK(job.step(optimizer) == Events{4, 200, 200});
  CHECK(job.step(optimizer).empty());
}

TEST_CASE("optim/optimizer: AdamW one by one takes a root and a quotient, which stays until the next is there") {
  Job job({{100, DType::float32}, {50, DType::float32}});
  TorchOptimizer optimizer(OptimizerKind::adamw_forloop, {job.parameters});
  job.step(optimizer);
  CHECK(job.step(optimizer) == Events{400, 400, -400, 200, 200, -400, -200, -200});
}

TEST_CASE("optim/optimizer: SGD without momentum takes nothing") {
  Job job({{100, DType::float32}});
  TorchOptimizer optimizer(OptimizerKind::sgd, {job.parameters});
  CHECK(job.step(optimizer).empty());
}

TEST_CASE("optim/optimizer: parameters without a gradient get no state") {
  Job job({{100, DType::float32}, {50, DType::float32}});
  set_grad(job.parameters[0], Tensor());
  TorchOptimizer optimizer(OptimizerKind::adamw_foreach, {job.parameters});
  CHECK(job.step(optimizer) == Events{200, 200, 200, -200});
}
