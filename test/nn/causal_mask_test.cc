// The events are those of a training step's forward pass on the null GPU: gemma-2-2b and mistral-7b-v0.3 with a window
// of 64, micro batch 2, 128 tokens, bfloat16.
#include "nn/causal_mask.h"

#include <doctest/doctest.h>

#include "quant/recorder.h"

namespace qlp {
namespace {

using namespace test;

constexpr MaskRequest kFull{.batch = 2, .rows = 128, .dtype = DType::bfloat16};
constexpr MaskRequest kSliding{.batch = 2, .rows = 128, .window = 64, .dtype = DType::bfloat16};

MaskRequest additive(MaskRequest request) {
  request.additive = true;
  return request;
}
MaskRequest with_extra_column(MaskRequest request) {
  request.extra_column = true;
  return request;
}

/// What making a mask takes; the mask stays.
Events made(const MaskRequest& request, MaskMaker maker) {
  DryDevice dry;
  const Tensor mask = make_causal_mask(dry.ctx, request, maker);
  CHECK(mask.shape() == Shape{2, 1, 128, 128});
  return dry.recorder.take();
}

}  // namespace

TEST_CASE("nn/causal_mask: transformers 4.48, Gemma 2: a triangle that the batch shares") {
  CHECK(made(additive(kFull), MaskMaker::triangular) == Events{32768, 32768, -32768, 1024, 16384, -1024, -16384});
}

TEST_CASE("nn/causal_mask: transformers 4.48, Mistral: comparisons, with a column for a token that never comes") {
  CHECK(made(with_extra_column(kFull), MaskMaker::windowed) == Events{33024, 1032, 16512, -1032, -16512});
  CHECK(made(with_extra_column(kSliding), MaskMaker::windowed) ==
        Events{33024, 1032, 16512, -1032, 1032, 1024, 16512, -1032, -1024, -16512, -16512});
}

TEST_CASE("nn/causal_mask: transformers 4.57: boolean squares that the batch shares") {
  CHECK(made(kSliding, MaskMaker::mapped) == Events{1024, 16, 8, 128, 1024, 16384, -1024, 16384, -16384, -128, 16384,
                                                    16384, -16384, -16384, -1024, -16, -8});
  SUBCASE("made additive for eager, one for each of the batch") {
    CHECK(made(additive(kFull), MaskMaker::mapped) ==
          Events{1024, 16, 8, 16384, -1024, -16, -8, 2, 2, 65536, -2, -2, -16384});
  }
}

TEST_CASE("nn/causal_mask: transformers 5: the same by broadcasting") {
  CHECK(made(kSliding, MaskMaker::broadcast) == Events{16,    8,      1024,   1024,  -1024, 1024,   1024, -1024,
                                                       1,     1024,   16384,  -1024, 16384, -16384, -1,   16384,
                                                       16384, -16384, -16384, -16,   -8,    -1024,  -1024});
  CHECK(made(additive(kFull), MaskMaker::broadcast) ==
        Events{16, 8, 1024, 1024, -1024, 1024, 1024, -1024, 16384, -16, -8, -1024, -1024, 2, 2, 65536, -2, -2, -16384});
}

TEST_CASE("nn/causal_mask: Gemma 2 of 4.48 narrows the mask in each layer that slides, one for each of the batch") {
  DryDevice dry;
  const Tensor mask = make_causal_mask(dry.ctx, additive(kFull), MaskMaker::triangular);
  dry.recorder.take();
  {
    const LayerMask layer = narrow_to_window(dry.ctx, mask, 8);
    CHECK(dry.recorder.take() == Events{32768, 32768, -32768, 2, 65536, -2});
  }
  CHECK(dry.recorder.take() == Events{-65536, -32768});
}

}  // namespace qlp
