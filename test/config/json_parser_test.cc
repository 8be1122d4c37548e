#include "config/json_parser.h"

#include <doctest/doctest.h>

using namespace qlp;

namespace {

NodePtr parse(std::string_view text) {
  auto root = parse_json(text, "a.json");
  REQUIRE(root);
  return *root;
}

std::string error_of(std::string_view text) {
  auto root = parse_json(text, "a.json");
  REQUIRE_FALSE(root);
  const auto& e = root.error().front();
  return std::to_string(e.position.line) + ":" + std::to_string(e.position.column) + " " + e.code + " " + e.message;
}

}  // namespace

TEST_CASE("config/json_parser: values, their kinds and places") {
  const auto root = parse("{\n  \"a\": [1, -2.5e3, \"x\"],\n  \"b\": null, \"c\": true\n}\n");
  const auto* list = find(*root, "a");
  REQUIRE(list->items.size() == 3);
  CHECK(integer_of(*list->items[0]).value() == 1);
  CHECK(number_of(*list->items[1]).value() == -2500);
  CHECK(list->items[2]->quoted);
  CHECK(list->items[2]->position.line == 2);
  CHECK(list->items[2]->position.column == 20);
  CHECK(find(*root, "b")->kind == NodeKind::null);
  CHECK(boolean_of(*find(*root, "c")).value());
  CHECK(parse("[]")->items.empty());
  CHECK(parse(" {} ")->entries.empty());
}

TEST_CASE("config/json_parser: what Python writes beyond JSON") {
  const auto root = parse(R"({"a": Infinity, "b": -Infinity, "c": NaN, "d": {"__float__": "Infinity"}})");
  for (auto key : {"a", "b", "c"}) CHECK_FALSE(number_of(*find(*root, key)));
  CHECK(find(*root, "d")->kind == NodeKind::map);
}

TEST_CASE("config/json_parser: escapes") {
  CHECK(parse(R"("a\n\"\\\/\u00e9\u20ac\ud83d\ude00")")->text == "a\n\"\\/\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(error_of(R"("\x")") == "1:3 json-syntax not JSON: unknown escape in a string");
  CHECK_FALSE(parse_json(R"("\u12")", ""));
  CHECK_FALSE(parse_json(R"("\ud800\u0041")", ""));
}

TEST_CASE("config/json_parser: the place of what is wrong") {
  CHECK(error_of("{\n  \"a\": 1,\n}") == "3:1 json-syntax not JSON: expected a key in double quotes");
  CHECK(error_of("{\"a\" 1}") == "1:6 json-syntax not JSON: expected ':' after the key");
  CHECK(error_of("{\"a\": 1 \"b\": 2}") == "1:9 json-syntax not JSON: expected ',' or '}' after the value");
  CHECK(error_of("[1, 2") == "1:6 json-syntax not JSON: expected ',' or ']' after the value");
  CHECK(error_of("") == "1:1 json-syntax not JSON: the file ends where a value should be");
  CHECK(error_of("{\"a\": tru}") == "1:7 json-syntax not JSON: expected a value, found 'tru'");
  CHECK(error_of("{} x") == "1:4 json-syntax not JSON: more text after the end of the value");
  CHECK(error_of("\"abc") == "1:1 json-syntax not JSON: a string without end");
  CHECK(error_of("'a'") == "1:1 json-syntax not JSON: expected a value, found ''a''");
  for (auto text : {"01", "1.", ".5", "+1", "0x10", "1e", "--1"}) CHECK_FALSE(parse_json(text, ""));
  CHECK_FALSE(parse_json(std::string(1000000, '['), ""));
  CHECK_FALSE(parse_json(std::string("{\"a\0\": 1}", 9), ""));
}
