#include "quant/code_tables.h"

#include <algorithm>

#include <doctest/doctest.h>

using namespace qlp;

TEST_CASE("quant/code_tables: 4-bit values lie between -1 and 1, nf4 in ascending order") {
  const auto nf4 = nf4_codes();
  CHECK(std::ranges::is_sorted(nf4));
  CHECK(nf4.front() == -1);
  CHECK(nf4[7] == 0);
  CHECK(nf4.back() == 1);
  const auto fp4 = fp4_codes();
  CHECK(*std::ranges::max_element(fp4) == 1);
  for (std::size_t i = 0; i < 8; ++i) CHECK(fp4[i] == -fp4[i + 8]);
  CHECK(fp4[1] == doctest::Approx(0.0625 / 12));
}

// create_dynamic_map() of bitsandbytes 0.50.2.
TEST_CASE("quant/code_tables: the dynamic type has 256 different values, as bitsandbytes makes them") {
  const auto codes = dynamic_codes();
  CHECK(std::ranges::is_sorted(codes));
  CHECK(std::ranges::adjacent_find(codes) == codes.end());
  CHECK(codes.front() == doctest::Approx(-0.99296874).epsilon(1e-6));
  CHECK(codes[127] == 0);
  CHECK(codes[128] == doctest::Approx(5.5e-07).epsilon(1e-6));
  CHECK(codes.back() == 1);
}
