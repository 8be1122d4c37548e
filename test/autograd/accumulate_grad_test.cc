#include "autograd/accumulate_grad.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "autograd/pointwise.h"
#include "quant/recorder.h"

using namespace qlp;
using test::DryDevice;

namespace {

Tensor leaf_of(DryDevice& dry, const Shape& shape) {
  Tensor leaf = dry.tensor(shape, DType::float32);
  set_requires_grad(leaf, true);
  return leaf;
}

void backward(DryDevice& dry, const Tensor& result) {
  dry.engine.backward(dry.ctx, {result}, {empty(dry.ctx, result.shape(), result.dtype(), Op::input)});
}

}  // namespace

TEST_CASE("autograd/accumulate_grad: a hook after it may let go of a gradient that was taken over") {
  DryDevice dry;
  const Tensor leaf = leaf_of(dry, {256});
  bool freed = false;
  int calls = 0;
  register_post_accumulate_hook(leaf, [&](Context&) {
    ++calls;
    REQUIRE(grad_of(leaf).defined());
    dry.recorder.take();
    set_grad(leaf, Tensor());
    freed = dry.recorder.take() == test::Events{-1024};
  });
  backward(dry, scale(dry.ctx, leaf, 2));
  CHECK(calls == 1);
  CHECK(freed);
}

TEST_CASE("autograd/accumulate_grad: the hook runs whenever something has been added") {
  DryDevice dry;
  const Tensor leaf = leaf_of(dry, {256});
  int calls = 0;
  register_post_accumulate_hook(leaf, [&](Context&) { ++calls; });
  for (int pass = 1; pass <= 3; ++pass) {
    backward(dry, scale(dry.ctx, leaf, 2));
    CHECK(calls == pass);
    CHECK(grad_of(leaf).defined());
  }
}
