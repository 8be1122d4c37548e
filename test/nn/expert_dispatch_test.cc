#include "nn/expert_dispatch.h"

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "quant/recorder.h"

using namespace qlp;
using test::DryDevice;

namespace {

constexpr std::int64_t kTokens = 12, kHidden = 8, kTopK = 2, kExperts = 6;

struct Batch {
  DryDevice dry;
  Tensor hidden = dry.tensor({kTokens, kHidden}, DType::bfloat16);
  Routing routing{.logits = {},
                  .indices = dry.tensor({kTokens, kTopK}, DType::int64),
                  .weights = dry.tensor({kTokens, kTopK}, DType::bfloat16)};
  DispatchState state;

  Dispatched dispatch(const ExpertParallel& parallel) {
    return dispatch_tokens(dry.ctx, hidden, routing, kExperts, parallel, state);
  }
  /// Bytes that ranks of the experts exchange.
  std::vector<std::uint64_t> exchanged() {
    std::vector<std::uint64_t> bytes;
    for (const CollectiveEvent& event : dry.device.work().collectives)
      if (event.kind == Collective::all_to_all) bytes.push_back(event.bytes);
    return bytes;
  }
};

}  // namespace

TEST_CASE("nn/expert_dispatch: every pair of token and expert travels to the expert and back") {
  Batch batch;
  const ExpertParallel parallel{.experts = {MeshAxis::ep, 3}, .batch = {}};
  const Dispatched got = batch.dispatch(parallel);
  CHECK(got.tokens.shape() == Shape{kTokens * kTopK, kHidden});
  CHECK(got.routing.indices.shape() == Shape{kTokens * kTopK, 1});
  CHECK(combine_tokens(batch.dry.ctx, got.tokens, batch.state, parallel).shape() == batch.hidden.shape());
  constexpr std::uint64_t kRows = kTokens * kTopK * kHidden * 2;
  CHECK(batch.exchanged() == std::vector<std::uint64_t>{kExperts * 8, kRows, kRows});
}

TEST_CASE("nn/expert_dispatch: ranks that hold one batch send a part of it each") {
  Batch batch;
  const ExpertParallel parallel{.experts = {MeshAxis::ep, 6}, .batch = {MeshAxis::tp, 3}};
  const Dispatched got = batch.dispatch(parallel);
  CHECK(got.tokens.shape() == Shape{kTokens * kTopK / 3, kHidden});
  CHECK(combine_tokens(batch.dry.ctx, got.tokens, batch.state, parallel).shape() == batch.hidden.shape());
}
