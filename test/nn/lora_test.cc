#include <doctest/doctest.h>

#include "autograd/engine.h"
#include "autograd/pointwise.h"
#include "nn/adapted_layer.h"
#include "nn/lora_linear.h"

namespace qlp {
namespace {

using test::AdaptedLayer;
using test::Events;

constexpr AdapterBehaviour kPeft018{.dora_identity_in_adapter_dtype = false};

}  // namespace

// Recorded from the oracle: q_proj of the first layer of Llama-3.2-1B, r 8, 128 tokens, stack 2025-10 (peft 0.18.0).
TEST_CASE("nn/lora: under autocast the input is cast to float32 and back, the weights once") {
  AdaptedLayer q({.r = 8}, kPeft018, DType::float32);  // adapter on q_proj and v_proj, bf16
  CHECK(q.forward(true, true) == Events{524288, 1048576, 32768, 524288, 2048, 32768, 524288, 524288, -524288, 524288,
                                        -1048576, -524288, -524288});
}

TEST_CASE("nn/lora: a 16-bit adapter without autocast casts nothing; dropout leaves its mask with the graph only") {
  AdaptedLayer q({.r = 8, .dropout = 0.1}, kPeft018, DType::bfloat16);  // autocast_adapter_dtype=False
  CHECK(q.forward(false, true) ==
        Events{524288, 262144, 524288, -262144, 2048, 524288, 524288, -524288, 524288, -524288, -524288});
}

TEST_CASE("nn/lora: what the graph does not need is given back by the end of the call") {
  for (const bool four_bit : {false, true})
    for (const bool autocast : {false, true})
      for (const double dropout : {0.0, 0.1}) {
        AdaptedLayer q({.r = 8, .dropout = dropout}, kPeft018, DType::float32,
                       four_bit ? std::optional(DType::uint8) : std::nullopt);
        const std::uint64_t before = q.dry.allocator.stats().requested.current;
        const Events events = q.forward(autocast, false);
        std::int64_t sum = 0;
        for (const std::int64_t bytes : events) sum += bytes;
        const std::int64_t result = 1 * 128 * 2048 * 2;
        const std::int64_t casts = autocast ? 2 * 8 * 2048 * 2 : 0;  // of A and B, until the region ends
        CHECK(sum == result + casts);
        CHECK(q.dry.allocator.stats().requested.current == before);
      }
}

TEST_CASE("nn/lora: A and B get gradients, the base weight none") {
  for (const bool four_bit : {false, true}) {
    AdaptedLayer q({.r = 8, .dropout = 0.1}, kPeft018, DType::float32,
                   four_bit ? std::optional(DType::uint8) : std::nullopt);
    const Tensor x = q.dry.tensor({1, 128, 2048}, DType::bfloat16);
    set_requires_grad(x, true);
    Tensor out;
    {
      const AutocastRegion region(q.dry.ctx, true);
      out = q.layer->forward(q.dry.ctx, x);
    }
    CHECK(out.dtype() == DType::bfloat16);
    q.dry.ctx.engine.backward(q.dry.ctx, {out}, {q.dry.tensor(out.shape(), out.dtype())});
    for (Linear* matrix : {&q.layer->lora_a(), &q.layer->lora_b()}) {
      const Tensor grad = grad_of(matrix->weight().tensor);
      REQUIRE(grad.defined());
      CHECK(grad.dtype() == DType::float32);
      CHECK(grad.shape() == matrix->weight().shape);
    }
    CHECK(grad_of(x).dtype() == DType::bfloat16);
    CHECK(!grad_of(q.layer->weight().tensor).defined());
  }
}

}  // namespace qlp
