#include "tensor/cub_scratch.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <doctest/doctest.h>

using namespace qlp;

namespace {

struct Case {
  std::int64_t items, keys;
  std::uint64_t sort, unique, scan;
};

void check(std::uint32_t toolkit, std::uint32_t capability, const std::vector<Case>& cases) {
  DeviceTraits traits;
  traits.cuda_toolkit = toolkit;
  traits.compute_capability = capability;
  for (const Case& c : cases) {
    CAPTURE(c.items);
    const int bits = toolkit >= 130 ? static_cast<int>(std::bit_width(static_cast<std::uint64_t>(c.keys))) : 64;
    CHECK(sort_pairs_bytes(c.items, bits, traits) == c.sort);
    CHECK(unique_by_key_bytes(c.items, traits) == c.unique);
    CHECK(scan_bytes(std::min(c.items, c.keys), DType::int64, traits) == c.scan);
  }
}

}  // namespace

// Requested bytes of embedding_dense_backward on the libraries named.
TEST_CASE("tensor/cub_scratch: torch 2.4.1 with CUDA 12.1") {
  check(121, 80,
        {{3073, 1000, 67583, 767, 1023},
         {16384, 151936, 284159, 1023, 1279},
         {65536, 151936, 1083903, 2303, 2047},
         {131072, 151936, 2149887, 3839, 3327}});
}

TEST_CASE("tensor/cub_scratch: torch 2.8.0 with CUDA 12.8") {
  check(128, 80,
        {{3073, 1000, 67583, 1023, 1023},
         {16384, 151936, 284159, 1023, 1279},
         {65536, 151936, 1083903, 1535, 2047},
         {131072, 151936, 2149887, 2047, 3327}});
}

TEST_CASE("tensor/cub_scratch: torch 2.14.1 with CUDA 13.0 makes room for the bits that are sorted by") {
  check(130, 80,
        {{3073, 1000, 55295, 1279, 1279},
         {16384, 32000, 271871, 1279, 1535},
         {16384, 151936, 273919, 1279, 1535},
         {131072, 151936, 2139647, 2815, 3583}});
}

TEST_CASE("tensor/cub_scratch: the tile of a sort depends on the architecture") {
  DeviceTraits hopper, turing;
  hopper.compute_capability = 90;
  turing.compute_capability = 75;
  CHECK(sort_pairs_bytes(131072, 64, hopper) == 2143743);
  CHECK(sort_pairs_bytes(131072, 64, turing) == 2162175);
}

// index_put_ with accumulate, torch 2.4.1, 2.8.0 and 2.14.1.
TEST_CASE("tensor/cub_scratch: few pairs are sorted by one block, without room of their own") {
  const DeviceTraits traits;
  CHECK(sort_pairs_bytes(2304, 12, traits) == 1);
  CHECK(sort_pairs_bytes(2305, 12, traits) == 43007);
  CHECK(sort_pairs_bytes(3841, 12, traits) == 68607);
}
