#include "nn/rope_scaling.h"

#include <doctest/doctest.h>

using namespace qlp;

namespace {

using Numbers = std::vector<double>;

RopeBase base(RopeScaling scaling, double theta = 10000, std::int64_t positions = 4096) {
  return {.width = 16, .theta = theta, .positions = positions, .scaling = std::move(scaling)};
}

void check(const RopeBase& rope, const Numbers& expected, double attention, std::int64_t length = 0) {
  const Numbers frequencies = inverse_frequencies(rope, length);
  REQUIRE(frequencies.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(frequencies[i] == doctest::Approx(expected[i]).epsilon(2e-6));
  }
  CHECK(attention_scaling(rope) == doctest::Approx(attention).epsilon(1e-6));
}

}  // namespace

// As ROPE_INIT_FUNCTIONS of transformers 4.57.1 give them.
TEST_CASE("nn/rope_scaling: every way of stretching, as the library has it") {
  check(base({.rope_type = RopeStretch::linear, .factor = 4}),
        {0.25, 0.07905694, 0.025, 0.007905695, 0.0025, 0.0007905695, 0.00025, 7.905695e-05}, 1);
  check(base({.rope_type = RopeStretch::llama3, .factor = 8, .original_max_position_embeddings = 8192}, 500000, 131072),
        {1, 0.1939228, 0.03760603, 0.007292665, 0.000524846, 3.428102e-05, 6.64787e-06, 1.289173e-06}, 1);
  check(base({.rope_type = RopeStretch::llama3, .factor = 8, .original_max_position_embeddings = 1024}),
        {1, 0.3162278, 0.1, 0.03162278, 0.003086761, 0.0003952847, 0.000125, 3.952847e-05}, 1);
  check(base({.rope_type = RopeStretch::yarn, .factor = 4, .original_max_position_embeddings = 1024}),
        {1, 0.3162278, 0.08125, 0.01976424, 0.004375, 0.0007905695, 0.00025, 7.905695e-05}, 1.138629);
  check(base({.rope_type = RopeStretch::yarn,
              .factor = 4,
              .original_max_position_embeddings = 1024,
              .beta_fast = 16,
              .beta_slow = 2,
              .truncate = false,
              .mscale = 0.7,
              .mscale_all_dim = 1}),
        {1, 0.3162278, 0.1, 0.0187018, 0.0025, 0.0007905695, 0.00025, 7.905695e-05}, 0.9634747);
}

TEST_CASE("nn/rope_scaling: dynamic and longrope look at the length") {
  const RopeBase dynamic = base({.rope_type = RopeStretch::dynamic, .factor = 2});
  check(dynamic, {1, 0.2702961, 0.07306, 0.01974783, 0.005337763, 0.001442777, 0.0003899769, 0.0001054093}, 1, 8192);
  CHECK(inverse_frequencies(dynamic, 4096) == inverse_frequencies(base({}), 4096));
  const RopeBase longrope = base({.rope_type = RopeStretch::longrope,
                                  .original_max_position_embeddings = 1024,
                                  .short_factor = {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7},
                                  .long_factor = {1, 2, 3, 4, 5, 6, 7, 8}});
  check(longrope, {1, 0.2874798, 0.08333334, 0.02432521, 0.007142857, 0.002108185, 0.000625, 0.0001860163}, 1.095445,
        512);
  check(longrope, {1, 0.1581139, 0.03333334, 0.007905695, 0.002, 0.0005270463, 0.0001428571, 3.952847e-05}, 1.095445,
        2048);
}
