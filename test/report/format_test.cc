#include "report/format.h"

#include <doctest/doctest.h>

namespace qlp {

TEST_CASE("report/format: amounts for people") {
  CHECK(gib(Bytes{3ULL << 29}) == "1.50");
  CHECK(gib(ByteDelta{-(1LL << 30)}) == "-1.00");
  CHECK(mib(Bytes{(1ULL << 20) + 1024}) == "1.001");
  CHECK(compute_capability_text(103) == "10.3");
}

TEST_CASE("report/format: columns line up and no line ends in blanks") {
  TextTable table{{"name", "a word", "GiB"}, 2};
  table.add({{"x"}, {"longer word"}, {"1.00"}});
  table.add({{"longer"}, {""}});
  CHECK(table.text(false) ==
        "name    a word        GiB\n"
        "x       longer word  1.00\n"
        "longer\n");
}

TEST_CASE("report/format: colours do not move columns") {
  TextTable table{{"a", "b"}, 1};
  table.add({{"x", Color::good}, {"1"}});
  CHECK(table.text(true) == "\x1b[1ma\x1b[0m  \x1b[1mb\x1b[0m\n\x1b[32mx\x1b[0m  1\n");
}

TEST_CASE("report/format: long text is broken at blanks") {
  CHECK(wrapped("aaa bbb ccc", 2, 7) == "aaa bbb\n  ccc");
  CHECK(wrapped("", 2) == "");
}

}  // namespace qlp
