#include "nn/dora.h"

#include <doctest/doctest.h>

#include "autograd/engine.h"
#include "nn/adapted_layer.h"

namespace qlp {
namespace {

using test::AdaptedLayer;
using test::Events;
using test::in_order;

constexpr LoraOptions kDora{.r = 8, .dora = true};
constexpr LoraOptions kWithDropout{.r = 8, .dropout = 0.1, .dora = true};
constexpr AdapterBehaviour kPeft013{
    .dora_reuses_base_result = false, .dora_is_variant = false, .dora_identity_in_adapter_dtype = false};
constexpr AdapterBehaviour kPeft018{.dora_identity_in_adapter_dtype = false};
constexpr AdapterBehaviour kPeft021{};

Events initialise(AdaptedLayer& q) {
  q.layer->dora()->magnitude().tensor.reset();
  q.dry.recorder.take();
  const Scoped grad_mode(q.dry.ctx.grad_enabled, false);
  q.layer->dora()->initialise(q.dry.ctx, q.layer->dora_operands());
  return in_order(q.dry.recorder.take());
}

}  // namespace

// Recorded from the oracle: q_proj of the first layer of Llama-3.2-1B, r 8, 128 tokens; stacks 2025-01 (peft 0.13.2),
// 2025-10 (0.18.0) and 2026-11 (0.21.2). The cuBLAS workspace of the first product is left out.
TEST_CASE("nn/dora: to initialise a 4-bit layer, the layer is copied twice over and its adapted weight made") {
  AdaptedLayer q(kDora, kPeft018, DType::float32, DType::uint8);
  CHECK(initialise(q) == Events{65536, 1,         -1,        64,       4,        -4,       4,        4,
                                -4,    1024,      4,         -4,       1024,     4,        -4,       2097152,
                                1,     -1,        65536,     1,        -1,       64,       4,        -4,
                                4,     4,         -4,        1024,     4,        -4,       1024,     4,
                                -4,    262144,    8388608,   -262144,  16777216, 16777216, 16777216, -16777216,
                                8192,  -16777216, -16777216, -8388608, -2097152, -65536,   -65536,   -1024,
                                -1024, -1024,     -1024,     -64,      -64,      -4,       -4});
}

TEST_CASE("nn/dora: to initialise a plain layer, its adapted weight is made") {
  AdaptedLayer q(kDora, kPeft018, DType::bfloat16);
  CHECK(initialise(q) == Events{8388608, 8388608, 8388608, -8388608, 4096, -8388608, -8388608});
}

TEST_CASE("nn/dora: 4 bit, 0.18, autocast, without a graph") {
  AdaptedLayer q(kDora, kPeft018, DType::float32, DType::uint8);
  CHECK(q.forward(true, false) ==
        Events{524288,   524288,   -524288, 8388608,  32768,   32768,   32768,    8388608, -32768,   262144,   8388608,
               -262144,  8388608,  8388608, -8388608, 8192,    4096,    -8388608, -8192,   8192,     2048,     524288,
               -2048,    8192,     1048576, -8192,    1048576, 1048576, -1048576, 1048576, -8388608, -8388608, -8388608,
               -1048576, -1048576, -524288, -8192,    -4096,   1048576, -1048576, -524288});
}

TEST_CASE("nn/dora: 4 bit, 0.18, bf16 adapter without autocast, dropout, with a graph") {
  AdaptedLayer q(kWithDropout, kPeft018, DType::bfloat16, DType::bfloat16);
  CHECK(q.forward(false, true) == Events{524288,   524288, -524288, 262144,  524288,   -262144,  8388608,  32768,
                                         8388608,  262144, 8388608, -262144, 8388608,  8388608,  -8388608, 4096,
                                         -8388608, 4096,   2048,    524288,  524288,   4096,     524288,   -4096,
                                         524288,   524288, -524288, 524288,  -8388608, -8388608, -8388608, -524288,
                                         -524288,  -32768, 524288,  -524288, -524288});
}

TEST_CASE("nn/dora: 4 bit, 0.21, autocast, dropout: the identity is in the adapter's dtype and goes early") {
  AdaptedLayer q(kWithDropout, kPeft021, DType::float32, DType::uint8);
  CHECK(q.forward(true, false) ==
        Events{524288,   524288,  -524288, 262144,    524288,  -262144,  16777216, 32768,    8388608,  32768,
               -8388608, 32768,   8388608, -16777216, -32768,  262144,   8388608,  -262144,  8388608,  8388608,
               -8388608, 8192,    4096,    -8388608,  -8192,   8192,     2048,     524288,   -2048,    524288,
               8192,     1048576, -8192,   1048576,   1048576, -1048576, 1048576,  -8388608, -8388608, -1048576,
               -1048576, -524288, -524288, -8192,     -4096,   1048576,  -1048576, -524288,  -524288});
}

TEST_CASE("nn/dora: plain layer, 0.13, autocast: x times the whole weight, also without dropout") {
  AdaptedLayer q(kDora, kPeft013, DType::float32);
  CHECK(q.forward(true, false) ==
        Events{524288,    1048576, 32768,    524288,   2048,     -524288,   32768,     524288,   -2048,    16777216,
               8388608,   32768,   -8388608, 8388608,  -32768,   16777216,  8388608,   16777216, -8388608, 8192,
               -16777216, 8192,    8192,     8388608,  524288,   524288,    -8388608,  -524288,  1048576,  -524288,
               -8192,     1048576, 1048576,  -1048576, 1048576,  -16777216, -16777216, -8388608, -1048576, -1048576,
               -524288,   -8192,   -8192,    1048576,  -1048576, -524288,   524288,    -1048576, -1048576});
}

TEST_CASE("nn/dora: the magnitude gets a gradient, the norm none") {
  for (const AdapterBehaviour& behaviour : {kPeft013, kPeft018, kPeft021})
    for (const bool four_bit : {false, true})
      for (const bool dropout : {false, true}) {
        AdaptedLayer q(dropout ? kWithDropout : kDora, behaviour, DType::float32,
                       four_bit ? std::optional(DType::uint8) : std::nullopt, {512, 2048});
        const std::uint64_t before = q.dry.allocator.stats().requested.current;
        {
          const Tensor x = q.dry.tensor({2, 64, 2048}, DType::bfloat16);
          Tensor out;
          {
            const AutocastRegion region(q.dry.ctx, true);
            out = q.layer->forward(q.dry.ctx, x);
          }
          // Linear4bit leaves the sum with the float32 magnitude as it is.
          CHECK(out.dtype() == (four_bit ? DType::float32 : DType::bfloat16));
          q.dry.ctx.engine.backward(q.dry.ctx, {out}, {q.dry.tensor(out.shape(), out.dtype())});
        }
        std::uint64_t gradients = 0;
        for (Parameter* parameter : q.layer->parameters()) {
          const bool trained = parameter->role != ParamRole::base_weight;
          const Tensor grad = grad_of(parameter->tensor);
          REQUIRE(grad.defined() == trained);
          if (!trained) continue;
          CHECK(grad.shape() == parameter->shape);
          gradients += bytes_of(grad.shape(), grad.dtype()).count();
        }
        CHECK(q.dry.allocator.stats().requested.current == before + gradients);
      }
}

}  // namespace qlp
