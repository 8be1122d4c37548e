#include "memory/string_table.h"

#include <string>

#include <doctest/doctest.h>

using namespace qlp;

TEST_CASE("memory/string_table: the same text has the same number") {
  StringTable table;
  CHECK(table.name(0).empty());
  const auto a = table.intern("linear");
  CHECK(table.intern("softmax") != a);
  CHECK(table.intern(std::string("linear")) == a);
  for (int i = 0; i < 1000; ++i) table.intern(std::to_string(i));
  const StringTable moved = std::move(table);
  CHECK(moved.name(a) == "linear");
  CHECK(moved.size() == 1003);
}
