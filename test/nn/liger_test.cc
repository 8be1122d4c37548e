#include "nn/liger.h"

#include <doctest/doctest.h>

#include "autograd/engine.h"
#include "autograd/views.h"
#include "nn/adapted_layer.h"

namespace qlp {
namespace {

using test::DryDevice;
using test::Events;
using test::in_order;

Events norm_backward(const LigerNorm& options) {
  DryDevice dry;
  const Tensor x = dry.tensor({1, 128, 2048}, DType::bfloat16);
  const Tensor weight = dry.tensor({2048}, DType::bfloat16);
  set_requires_grad(x, true);
  const Tensor out = liger_rms_norm(dry.ctx, x, weight, options, {});
  CHECK(in_order(dry.recorder.take()) == Events{524288, 512});
  const Tensor grad = dry.tensor(out.shape(), out.dtype());
  dry.ctx.engine.backward(dry.ctx, {out}, {grad});
  CHECK(grad_of(x).shape() == x.shape());
  return in_order(dry.recorder.take());
}

}  // namespace

// Recorded from the oracle: the final norm of Llama-3.2-1B with LoRA, 128 tokens, 108 multiprocessors.
TEST_CASE("nn/liger: 0.6 works out the gradient of a frozen norm's weight and drops it") {
  const Events events = norm_backward({.in_place = true, .skips_frozen_gain = false});
  CHECK(Events(events.begin(), events.begin() + 3) == Events{884736, 8192, 4096});
}

TEST_CASE("nn/liger: 0.8 does not, and writes over the gradient that arrives") {
  const Events events = norm_backward({.in_place = true, .skips_frozen_gain = true});
  CHECK(std::find(events.begin(), events.end(), 884736) == events.end());
}

TEST_CASE("nn/liger: rotary embedding moves nothing where q and k lie head by head within each token") {
  DryDevice dry;
  const Tensor q = dry.tensor({1, 128, 32, 64}, DType::bfloat16), k = dry.tensor({1, 128, 8, 64}, DType::bfloat16);
  const RotaryTables tables{dry.tensor({1, 128, 64}, DType::bfloat16), dry.tensor({1, 128, 64}, DType::bfloat16)};
  const Rotated turned = liger_rope(dry.ctx, q.transpose(1, 2), k.transpose(1, 2), tables);
  CHECK(turned.q.shape() == Shape{1, 32, 128, 64});
  CHECK(&turned.q.storage() == &q.storage());
  CHECK(&turned.k.storage() == &k.storage());
  CHECK(dry.recorder.take().empty());
}

TEST_CASE("nn/liger: the gradients of the gated product take no memory of their own") {
  DryDevice dry;
  const Tensor gate = dry.tensor({1, 128, 8192}, DType::bfloat16), up = dry.tensor({1, 128, 8192}, DType::bfloat16);
  set_requires_grad(gate, true), set_requires_grad(up, true);
  const Tensor out = liger_gated_product(dry.ctx, gate, up, Activation::silu);
  CHECK(dry.recorder.take() == Events{2097152});
  const Tensor grad = dry.tensor(out.shape(), out.dtype());
  dry.ctx.engine.backward(dry.ctx, {out}, {grad});
  for (const std::int64_t bytes : dry.recorder.take()) CHECK(std::abs(bytes) != 1);
  CHECK(grad_of(gate).shape() == gate.shape());
}

}  // namespace qlp
