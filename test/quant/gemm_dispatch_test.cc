#include "quant/gemm_dispatch.h"

#include <doctest/doctest.h>

namespace qlp {
namespace {

/// Most rows up to which every product is fused, of those tried; 0 if none is.
std::int64_t fused_up_to(std::int64_t n, std::int64_t k, std::uint32_t compute_capability, std::uint32_t sm_count,
                         DType dtype = DType::bfloat16) {
  DeviceTraits traits;
  traits.compute_capability = compute_capability, traits.sm_count = sm_count;
  std::int64_t m = 0;
  while (m < 2048 && uses_fused_gemm_4bit({m + 1, n, k}, dtype, traits)) ++m;
  return m;
}

}  // namespace

// From _gemm_4bit_use_custom_cuda of bitsandbytes 0.50.2, asked directly.
TEST_CASE("quant/gemm_dispatch: the weights of Llama-3-8B on an A100") {
  CHECK(fused_up_to(4096, 4096, 80, 108) == 5);  // 6 and 7 rows are dequantized
  CHECK(fused_up_to(1024, 4096, 80, 108) == 16);
  CHECK(fused_up_to(14336, 4096, 80, 108) == 64);
  CHECK(fused_up_to(4096, 14336, 80, 108) == 5);
}

TEST_CASE("quant/gemm_dispatch: the weights of Llama-3-8B on an H100") {
  CHECK(fused_up_to(4096, 4096, 90, 132) == 7);
  CHECK(fused_up_to(14336, 4096, 90, 132) == 32);
  CHECK(fused_up_to(28672, 8192, 90, 132) == 64);
}

TEST_CASE("quant/gemm_dispatch: small weights are fused far") {
  CHECK(fused_up_to(2048, 512, 80, 108) == 1536);
  CHECK(fused_up_to(2048, 512, 90, 132) == 512);
  CHECK(fused_up_to(2048, 512, 89, 128) == 320);
}

TEST_CASE("quant/gemm_dispatch: what has no tensor core kernel is fused for single rows") {
  CHECK(fused_up_to(4096, 4096, 80, 108, DType::float32) == 7);
  CHECK(fused_up_to(4096, 4096, 75, 40, DType::bfloat16) == 7);
  CHECK(fused_up_to(14336, 4096, 75, 40, DType::float16) == 128);
}

TEST_CASE("quant/gemm_dispatch: other architectures") {
  CHECK(fused_up_to(14336, 4096, 86, 84) == 128);
  CHECK(fused_up_to(14336, 4096, 89, 128) == 128);
  CHECK(fused_up_to(14336, 4096, 87, 16) == 4);
  CHECK(fused_up_to(14336, 4096, 100, 148) == 8);
  CHECK(fused_up_to(14336, 4096, 120, 170) == 64);
  CHECK(fused_up_to(14336, 4096, 121, 48) == 256);
}

TEST_CASE("quant/gemm_dispatch: blocks that cross rows are always dequantized") {
  CHECK(fused_up_to(4096, 4096 + 32, 80, 108) == 0);
}

}  // namespace qlp
