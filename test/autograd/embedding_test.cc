#include "autograd/embedding.h"

#include <doctest/doctest.h>

#include "quant/recorder.h"

using namespace qlp;
using test::DryDevice;
using test::Events;

namespace {

/// What the backward pass takes for `count` indices into a table of bfloat16 [V, H].
Events backward_events(std::int64_t count, std::int64_t rows, std::int64_t width, DeviceTraits traits = {}) {
  DryDevice dry(traits);
  const Tensor table = dry.tensor({rows, width}, DType::bfloat16);
  set_requires_grad(table, true);
  const Tensor indices = dry.tensor({1, count}, DType::int64);
  const Tensor out = embedding(dry.ctx, indices, table);
  const Tensor grad = dry.tensor(out.shape(), DType::bfloat16);
  dry.engine.backward(dry.ctx, {out}, {grad});
  return dry.recorder.take();
}

}  // namespace

// Requested bytes of embedding_dense_backward, torch 2.8.0.
TEST_CASE("autograd/embedding: few indices go straight into the gradient") {
  CHECK(backward_events(3072, 1000, 64) == Events{128000});
}

TEST_CASE("autograd/embedding: many are sorted and summed in parts") {
  CHECK(backward_events(4096, 128256, 64) == Events{32768,  32768, 32768,  84479,   -84479,   -32768, 16416768, 32768,
                                                    8,      32768, 1023,   -1023,   -32768,   32768,  32768,    1023,
                                                    -1023,  8,     36040,  1153280, -1153280, -36040, -8,       -32768,
                                                    -32768, -8,    -32768, -32768,  -32768});
}

TEST_CASE("autograd/embedding: no more parts than rows and tenths of the indices") {
  const Events events = backward_events(100000, 1000, 256);
  CHECK(events[18] == 88000);
  CHECK(events[19] == 11264000);
}
