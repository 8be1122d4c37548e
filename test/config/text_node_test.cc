#include "config/text_node.h"

#include <doctest/doctest.h>

using namespace qlp;

namespace {

TextNode scalar(std::string text, bool quoted = false) {
  TextNode node;
  node.kind = NodeKind::scalar;
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

}  // namespace

TEST_CASE("config/text_node: integers") {
  CHECK(integer_of(scalar("0")).value() == 0);
  CHECK(integer_of(scalar("-12")).value() == -12);
  CHECK(integer_of(scalar("+12")).value() == 12);
  CHECK(integer_of(scalar("9223372036854775807")).value() == INT64_MAX);
  for (auto text : {"9223372036854775808", "010", "-08", "0x10", "1e3", "1_000", "1.0", "-", "+", "", "true", "1 "})
    CHECK_FALSE(integer_of(scalar(text)));
  CHECK_FALSE(integer_of(scalar("12", true)));
  CHECK_FALSE(integer_of(TextNode{}));
}

TEST_CASE("config/text_node: numbers are finite") {
  CHECK(number_of(scalar("0.05")).value() == 0.05);
  CHECK(number_of(scalar("1e-5")).value() == 1e-5);
  CHECK(number_of(scalar("+3")).value() == 3);
  for (auto text : {"nan", "inf", "-inf", ".nan", ".inf", "1e999", "0x1p3", "01", "1,5", "", "5%", "Infinity"})
    CHECK_FALSE(number_of(scalar(text)));
}

TEST_CASE("config/text_node: booleans are true and false") {
  CHECK(boolean_of(scalar("true")).value());
  CHECK(boolean_of(scalar("False")).value() == false);
  for (auto text : {"yes", "no", "on", "off", "1", "0", ""}) CHECK_FALSE(boolean_of(scalar(text)));
  CHECK_FALSE(boolean_of(scalar("true", true)));
}

TEST_CASE("config/text_node: what was found, for people") {
  CHECK(describe(scalar("abc")) == "'abc'");
  CHECK(describe(scalar("80", true)) == "the text '80'");
  CHECK(describe(scalar("a\nb")) == "'a b'");
  CHECK(describe(scalar(std::string(50, 'x'))) == "'" + std::string(40, 'x') + "...'");
  CHECK(describe(TextNode{}) == "nothing");
}
