#include "optim/clip_grad_norm.h"

#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "autograd/node.h"
#include "quant/recorder.h"

using namespace qlp;
using test::DryDevice;
using test::Events;

namespace {

std::vector<Tensor> with_gradients(DryDevice& dry, const std::vector<std::pair<std::int64_t, DType>>& tensors) {
  std::vector<Tensor> parameters;
  for (const auto& [numel, dtype] : tensors) {
    parameters.push_back(dry.tensor({numel}, dtype));
    set_grad(parameters.back(), dry.tensor({numel}, dtype));
  }
  return parameters;
}

}  // namespace

// As recorded with torch 2.8.0.
TEST_CASE("optim/clip_grad_norm: norms of all gradients, their stack, their norm and the factor") {
  DryDevice dry;
  const auto parameters = with_gradients(dry, {{100, DType::float32}, {200, DType::float32}});
  const Tensor norm = clip_grad_norm(dry.ctx, parameters, 1);
  CHECK(norm.dtype() == DType::float32);
  CHECK(dry.recorder.take() == Events{8, 4, 4, -8, 8, 4, -8, -4, -4, 4, 4, 4, -4, -4, 4, -4, -4});
}

TEST_CASE("optim/clip_grad_norm: partial values for every 65536 elements of the largest gradient") {
  DryDevice dry;
  const auto parameters = with_gradients(dry, {{100, DType::bfloat16}, {65537, DType::bfloat16}});
  const Tensor norm = clip_grad_norm(dry.ctx, parameters, 1);
  CHECK(norm.dtype() == DType::bfloat16);
  CHECK(dry.recorder.take().front() == 2 * 2 * 4);
}

TEST_CASE("optim/clip_grad_norm: dtypes apart, the last one first; the norm is in the wider one") {
  DryDevice dry;
  const auto parameters = with_gradients(dry, {{100, DType::bfloat16}, {100, DType::float32}, {100, DType::bfloat16}});
  const Tensor norm = clip_grad_norm(dry.ctx, parameters, 1);
  CHECK(norm.dtype() == DType::float32);
  const Events events = dry.recorder.take();
  CHECK(Events(events.begin(), events.begin() + 8) == Events{4, 4, -4, 8, 2, 2, -8, 12});
}
