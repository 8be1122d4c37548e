// The events are those of F.scaled_dot_product_attention on the null GPU (sm80).
#include "autograd/attention.h"

#include <doctest/doctest.h>

#include "autograd/attention_run.h"
#include "autograd/autocast.h"

namespace qlp {
namespace {

using namespace test;

AttentionRun run(const AttentionSize& size, DType dtype, const AttentionBehaviour& behaviour,
                 const std::function<Tensor(DryDevice&)>& make_mask = {}) {
  DryDevice dry(a100());
  const Tensor mask = make_mask ? make_mask(dry) : Tensor();
  return run_attention(dry, size, dtype, [&](Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v) {
    return scaled_dot_product_attention(ctx, q, k, v, mask, behaviour);
  });
}

std::function<Tensor(DryDevice&)> mask_of(const Shape& shape, DType dtype) {
  return [=](DryDevice& dry) { return dry.tensor(shape, dtype); };
}

}  // namespace

TEST_CASE("autograd/attention: 16 bits without a mask run on flash, everything else on the memory-efficient kernel") {
  CHECK(run({2, 8, 8, 128, 64}, DType::bfloat16, kTorch28).forward == Events{262144, 8192, 16, 8});
  CHECK(run({2, 8, 8, 128, 64}, DType::float32, kTorch28).forward == Events{524288, 8192});
  CHECK(run({2, 8, 8, 128, 64}, DType::bfloat16, kTorch28, mask_of({1, 1, 128, 128}, DType::bfloat16)).forward ==
        Events{262144, 8192});
}

TEST_CASE("autograd/attention: a boolean mask is made additive, by version of torch") {
  const auto mask = mask_of({1, 1, 128, 128}, DType::boolean);
  CHECK(run({2, 8, 8, 128, 64}, DType::bfloat16, kTorch24, mask).forward == Events{32768, 16384, -16384, 262144, 8192});
  CHECK(run({2, 8, 8, 128, 64}, DType::bfloat16, kTorch28, mask).forward == Events{2, 2, 32768, -2, -2, 262144, 8192});
  CHECK(run({2, 8, 8, 128, 64}, DType::float32, kTorch214, mask).forward ==
        Events{4, 4, 65536, -4, -4, 8, 8, 524288, 8192});
}

TEST_CASE("autograd/attention: rows of a mask are padded to a multiple of 8") {
  CHECK(run({2, 8, 8, 500, 64}, DType::bfloat16, kTorch28, mask_of({1, 1, 500, 500}, DType::boolean)).forward ==
        Events{2, 2, 500000, -2, -2, 504000, -500000, 1024000, 32768});
  CHECK(run({2, 8, 8, 504, 64}, DType::bfloat16, kTorch28, mask_of({1, 1, 504, 504}, DType::bfloat16)).forward ==
        Events{1032192, 32768});
  SUBCASE("also where only their stride is not one: a mask of 4.48 with a column too many") {
    const auto wide = [](DryDevice& dry) {
      return dry.tensor({128, 129}, DType::bfloat16).strided({2, 1, 128, 128}, {0, 0, 129, 1});
    };
    CHECK(run({2, 8, 8, 128, 64}, DType::bfloat16, kTorch24, wide).forward == Events{69632, 262144, 8192});
  }
}

TEST_CASE("autograd/attention: grouped heads in float32 without a mask fall back to plain products before torch 2.9") {
  CHECK(run({1, 8, 2, 200, 64}, DType::float32, kTorch28).forward ==
        Events{409600,  40000,   40000,  -40000, 4, 4,  160000, -4,      -4,       -40000, 409600,  409600, 409600,
               1280000, 1280000, 320000, 1600,   4, -4, -1600,  -320000, -1280000, 409600, -409600, -160000});
}

TEST_CASE("autograd/attention: autocast casts v, then k, then q") {
  DryDevice dry(a100());
  const AutocastRegion region(dry.ctx, true);
  const AttentionRun cast = run_attention(dry, {1, 8, 2, 256, 64}, DType::float32,
                                          [&](Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v) {
                                            return scaled_dot_product_attention(ctx, q, k, v, {}, kTorch28);
                                          });
  CHECK(cast.forward == Events{65536, 65536, 262144, 262144, 8192, 16, 8});
}

}  // namespace qlp
