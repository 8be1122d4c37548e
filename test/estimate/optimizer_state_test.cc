#include "estimate/optimizer_state.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "optim/optimizer_names.h"

using namespace qlp;

namespace {

const std::vector<TrainedShape> kTrained{{.rows = 4096, .width = 64, .vector = false, .dtype = DType::bfloat16},
                                         {.rows = 1000, .width = 300, .vector = false, .embedding = true},
                                         {.rows = 4095}};

OptimizerState state_of(const std::string& name) {
  return optimizer_state(named_optimizer(name).kind, OptimizerBehaviour{}, kTrained, AdagradStart::moved);
}

}  // namespace

TEST_CASE("estimate/optimizer_state: paging moves bytes out of the allocator, and makes none") {
  for (const std::string algorithm : {"lion_32bit", "lion_8bit"}) {
    const OptimizerState plain = state_of(algorithm), paged = state_of("paged_" + algorithm);
    CHECK(plain.managed == Bytes{});
    CHECK(paged.managed > Bytes{});
    CHECK(paged.managed + paged.allocated == plain.allocated);
  }
  CHECK(state_of("paged_adamw_8bit").managed + state_of("paged_adamw_8bit").allocated ==
        state_of("adamw_bnb_8bit").allocated);
}

TEST_CASE("estimate/optimizer_state: eight bits take less than 32, an average less than two") {
  CHECK(state_of("lion_8bit").allocated < state_of("lion_32bit").allocated);
  CHECK(state_of("ademamix_8bit").allocated < state_of("ademamix").allocated);
  CHECK(state_of("lion_8bit").allocated < state_of("adamw_8bit").allocated);
  CHECK(state_of("adamw_8bit").allocated < state_of("ademamix_8bit").allocated);
  CHECK(state_of("adafactor").allocated < state_of("rmsprop").allocated);
  CHECK(state_of("sgd").allocated == Bytes{});
}

TEST_CASE("estimate/optimizer_state: never less for more elements, unless they are enough for 8 bits") {
  for (const OptimizerName& row : kOptimizerNames) {
    CAPTURE(row.name);
    Bytes before;
    for (const std::int64_t numel : {1, 4095, 4096, 99999, 100000, 200000}) {
      const TrainedShape one{.rows = numel};
      const OptimizerState state = optimizer_state(row.kind, OptimizerBehaviour{}, {&one, 1}, AdagradStart::moved);
      const Bytes total = state.allocated + state.managed;
      const auto in = [&](std::string_view bits) { return row.name.find(bits) != std::string_view::npos; };
      const bool narrows = numel == 4096 && (in("8bit") || in("4bit"));
      CHECK((total < before) == narrows);
      before = total;
    }
  }
}
