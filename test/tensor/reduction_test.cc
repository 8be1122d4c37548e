#include "tensor/reduction.h"

#include <vector>

#include <doctest/doctest.h>

#include "quant/recorder.h"

using namespace qlp;

namespace {

struct Case {
  Shape shape;
  Strides strides;
  DimensionMask reduced;
  ReductionScratch expected;
};

}  // namespace

// Requested bytes of torch.sum on an A100, the same in torch 2.4.1, 2.8.0 and 2.14.1.
TEST_CASE("tensor/reduction: buffer and semaphores of a sum") {
  const std::vector<Case> cases{
      {{8, 2048, 1}, {2048, 1, 1}, 4, {0, 0}},
      {{8, 333, 4096}, {1363968, 4096, 1}, 4, {0, 0}},
      {{1, 8192, 100}, {819200, 100, 1}, 4, {0, 0}},
      {{2, 1000, 3584}, {3584000, 3584, 1}, 3, {58720256, 112}},
      {{4096, 8, 896}, {896, 3670016, 1}, 4, {0, 0}},
      {{1, 128, 8, 128}, {131072, 1024, 128, 1}, 3, {0, 0}},
      {{8, 128, 128}, {16384, 128, 1}, 3, {1048576, 4}},
      {{8, 2048, 2}, {4096, 2, 1}, 7, {0, 0}},
      {{8, 333, 16}, {5328, 16, 1}, 3, {0, 0}},
      {{2, 2048, 8192}, {16777216, 8192, 1}, 3, {113246208, 256}},
      {{8, 128, 40}, {5120, 40, 1}, 3, {0, 0}},
      {{512, 4, 14336}, {14336, 7340032, 1}, 4, {0, 0}},
      {{1, 8192, 8}, {65536, 8, 1}, 3, {0, 0}},
      {{8192, 1, 4096}, {4096, 33554432, 1}, 1, {113246208, 128}},
      {{2, 1000, 2304}, {2304000, 2304, 1}, 7, {1728, 4}},
      {{2, 512, 16}, {8192, 16, 1}, 7, {0, 0}},
      {{8, 2048, 896}, {1835008, 896, 1}, 2, {113770496, 224}},
      {{1000, 2, 2}, {2, 2000, 1}, 2, {0, 0}},
      {{1000, 4, 1000}, {1000, 1000000, 1}, 4, {0, 0}},
      {{1, 1000, 3, 80}, {240000, 240, 80, 1}, 6, {491520, 8}},
      {{1, 1000, 3, 80}, {240000, 240, 80, 1}, 7, {491520, 8}},
      {{2, 128, 2304}, {294912, 2304, 1}, 2, {0, 0}},
      {{1, 1000, 64}, {64000, 64, 1}, 7, {0, 0}},
      {{8, 4096, 5120}, {20971520, 5120, 1}, 7, {5120, 4}},
      {{8192, 8, 3072}, {3072, 25165824, 1}, 3, {113246208, 96}},
      {{512, 2, 16}, {16, 8192, 1}, 2, {0, 0}},
      {{1, 4096, 8192}, {33554432, 8192, 1}, 7, {1728, 4}},
      {{2, 512, 16, 128}, {1048576, 2048, 128, 1}, 8, {0, 0}},
      {{2048, 4, 1536}, {1536, 3145728, 1}, 2, {0, 0}},
      {{1, 4096, 32, 128}, {16777216, 4096, 128, 1}, 7, {113246208, 4}},
      {{4, 4096, 8}, {32768, 8, 1}, 2, {65536, 4}},
      {{1, 128, 1}, {128, 1, 1}, 2, {0, 0}},
      {{2, 4096, 1024}, {4194304, 1024, 1}, 2, {67108864, 64}},
      {{128, 4, 8192}, {8192, 1048576, 1}, 1, {0, 0}},
      {{2048, 1, 512}, {512, 1048576, 1}, 1, {8388608, 16}},
      {{4, 2048, 4, 64}, {524288, 256, 64, 1}, 6, {16777216, 8}},
      {{2, 1000, 256}, {256000, 256, 1}, 2, {0, 0}},
      {{2048, 1, 8192}, {8192, 16777216, 1}, 1, {113246208, 256}},
      {{1, 128, 8, 128}, {131072, 1024, 128, 1}, 8, {0, 0}},
      {{1, 1000, 3, 80}, {240000, 240, 80, 1}, 8, {0, 0}},
      {{1, 128, 8, 128}, {131072, 1024, 128, 1}, 6, {1048576, 4}},
      {{1, 1000, 3, 80}, {240000, 240, 80, 1}, 3, {0, 0}},
      {{333, 8, 3584}, {3584, 1193472, 1}, 1, {0, 0}},
      {{4, 2048, 4, 64}, {524288, 256, 64, 1}, 3, {16777216, 8}},
      {{1, 4096, 32, 128}, {16777216, 4096, 128, 1}, 3, {113246208, 128}},
      {{4, 2048, 4, 64}, {524288, 256, 64, 1}, 7, {4194304, 4}},
      {{2, 512, 16, 128}, {1048576, 2048, 128, 1}, 3, {16777216, 64}},
  };
  for (const Case& c : cases) {
    CAPTURE(to_string(c.shape));
    CAPTURE(c.reduced);
    const ReductionScratch scratch = reduction_scratch_bytes(c.shape, c.strides, c.reduced, {});
    CHECK(scratch.buffer_bytes == c.expected.buffer_bytes);
    CHECK(scratch.semaphore_bytes == c.expected.semaphore_bytes);
  }
}

TEST_CASE("tensor/reduction: fewer multiprocessors share among fewer blocks") {
  DeviceTraits small;
  small.sm_count = 14;
  small.compute_capability = 86;
  const Shape shape{16777216};
  CHECK(reduction_scratch_bytes(shape, contiguous_strides(shape), 1, {}).buffer_bytes == 1728);
  CHECK(reduction_scratch_bytes(shape, contiguous_strides(shape), 1, small).buffer_bytes == 512);
}

TEST_CASE("tensor/reduction: what it takes is gone when it is done") {
  test::DryDevice dry;
  const Tensor gradient = dry.tensor({1, 128, 8, 128}, DType::bfloat16);
  reduction_scratch(dry.ctx, gradient, 0b0111, Op::sum);
  CHECK(dry.recorder.take() == test::Events{1048576, 4, -4, -1048576});
  full_reduction_scratch(dry.ctx, 1000, Op::sum);
  CHECK(dry.recorder.take().empty());
}
