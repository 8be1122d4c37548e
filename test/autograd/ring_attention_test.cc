#include "autograd/ring_attention.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "autograd/attention_run.h"

namespace qlp {
namespace {

using namespace test;

struct Held {
  std::int64_t peak = 0, end = 0;
};

Held held(const Events& events) {
  Held held;
  for (const std::int64_t bytes : events) held.end += bytes, held.peak = std::max(held.peak, held.end);
  return held;
}

AttentionRun run(DryDevice& dry, const Ring& ring, const AttentionSize& size) {
  return run_attention(dry, size, DType::bfloat16,
                       [&](Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v) {
                         return ring_attention(ctx, q, k, v, ring, kTorch214);
                       });
}

/// Of matrix products, by rank `rank` of `ranks` that share `rows`, forward and backward.
double operations(std::int64_t ranks, std::int64_t rank, std::int64_t rows) {
  DryDevice dry(a100());
  run(dry, {.ranks = ranks, .rank = rank}, {1, 8, 2, rows / ranks, 64});
  return dry.device.work().operations[static_cast<std::size_t>(DType::bfloat16)];
}

}  // namespace

// Of the first layer of Llama-3.2-1B, 1024 tokens on two ranks: torch 2.14.1 under accelerate 1.15 (cp_size 2), rank 0.
TEST_CASE("autograd/ring_attention: parts are merged in float32, gradients are summed in it") {
  DryDevice dry(a100());
  const AttentionRun ring = run(dry, {.ranks = 2}, {1, 32, 8, 512, 64});
  CHECK(held(ring.forward).peak == 15859760);
  CHECK(held(ring.forward).end == 2162712);
  CHECK(held(ring.backward).peak == 26279936);
  CHECK(held(ring.backward).end == 3145728);
}

TEST_CASE("autograd/ring_attention: ranks look at as many pairs as one, each at as many") {
  const double whole = operations(1, 0, 512);
  for (const std::int64_t ranks : {2, 4, 8}) {
    double sum = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      CHECK(operations(ranks, rank, 512) == operations(ranks, 0, 512));
      sum += operations(ranks, rank, 512);
    }
    CHECK(sum == whole);
  }
}

TEST_CASE("autograd/ring_attention: keys and values are gathered once, or go from rank to rank") {
  const auto collectives = [](RingRotation rotation) {
    DryDevice dry(a100());
    run(dry, {.ranks = 4, .rank = 1, .rotation = rotation}, {1, 8, 2, 128, 64});
    return dry.device.work().collectives;
  };
  constexpr std::uint64_t kOwn = 2 * 2 * 128 * 64 * 2;  // keys and values
  const auto gathered = collectives(RingRotation::allgather);
  REQUIRE(gathered.size() ==
          2 + 2 * 4);  // and the sums of their gradients, a message to and from a neighbour each step
  CHECK(gathered[0].kind == Collective::all_gather);
  CHECK(gathered[0].bytes == 4 * kOwn);
  CHECK(gathered[0].group == RankGroup{MeshAxis::cp, 4});
  const auto sent = collectives(RingRotation::alltoall);
  REQUIRE(sent.size() == 2 * 3 + 2 * 3 + 2 * 4);
  CHECK(sent[0].kind == Collective::send);
  CHECK(sent[0].bytes == kOwn);
  CHECK(sent.back().kind == Collective::recv);
  CHECK(sent.back().bytes == 2 * kOwn);  // in float32
}

}  // namespace qlp
