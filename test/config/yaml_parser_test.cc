#include "config/yaml_parser.h"

#include <doctest/doctest.h>

using namespace qlp;

namespace {

NodePtr parse(std::string_view text) {
  auto root = parse_yaml(text, "a.yaml");
  REQUIRE(root);
  return *root;
}

Diagnostic error_of(std::string_view text) {
  auto root = parse_yaml(text, "a.yaml");
  REQUIRE_FALSE(root);
  return root.error().front();
}

}  // namespace

TEST_CASE("config/yaml_parser: values keep their text and their place") {
  const auto root = parse("a: 010\nb:\n  - x\n  - 'y'\nc:\n");
  REQUIRE(root->entries.size() == 3);
  CHECK(find(*root, "a")->text == "010");
  CHECK(find(*root, "a")->position.line == 1);
  CHECK(find(*root, "a")->position.column == 4);
  const auto* list = find(*root, "b");
  CHECK(list->items[0]->quoted == false);
  CHECK(list->items[1]->quoted == true);
  CHECK(list->items[1]->position.line == 4);
  CHECK(list->items[1]->position.column == 5);
  CHECK(find(*root, "c")->kind == NodeKind::null);
  CHECK(root->entries[2].key_position.line == 5);
  CHECK(find(*root, "d") == nullptr);
}

TEST_CASE("config/yaml_parser: columns count letters, not bytes, and a byte order mark is none") {
  const auto root = parse("\xEF\xBB\xBF{\"\xC3\xA9\": 1, b: 2}");
  CHECK(root->entries[0].key_position.column == 2);
  CHECK(root->entries[1].key_position.column == 10);
}

TEST_CASE("config/yaml_parser: duplicate keys stay, the last one is found") {
  const auto root = parse("a: 1\na: 2\n");
  CHECK(root->entries.size() == 2);
  CHECK(find(*root, "a")->text == "2");
}

TEST_CASE("config/yaml_parser: aliases share what they stand for") {
  const auto root = parse("a: &x {b: 1}\nc: *x\n");
  CHECK(find(*root, "a") == find(*root, "c"));
}

TEST_CASE("config/yaml_parser: a line that is indented with tabs") {
  CHECK(error_of("a:\n\tb: 1\n").hint == "the line begins with a tab: indent with spaces");
  CHECK(error_of("a:\n  b: c: 1\n").hint.empty());
}

TEST_CASE("config/yaml_parser: tags of the core schema only") {
  CHECK(find(*parse("a: !!str 5"), "a")->quoted);
  CHECK(error_of("a: !mine 5").code == "yaml-syntax");
}

TEST_CASE("config/yaml_parser: what is no YAML document") {
  CHECK(error_of("").code == "empty-file");
  CHECK(error_of("# only a comment\n").code == "empty-file");
  CHECK(error_of("~").code == "empty-file");
  CHECK(error_of("a: [1, 2").code == "yaml-syntax");
  CHECK(error_of("a: 'b").code == "yaml-syntax");
  CHECK(error_of("a: 'b\n").message == "a quote without end");
  CHECK(error_of("a: \"b\\\"\n").message == "a quote without end");
  CHECK(error_of("a: 1\n--- \nb: 2\n").message == "a second document: one file holds one");
  CHECK(error_of("a: &x [*x]").position.column == 8);
  CHECK(error_of(std::string("a: \0", 4)).code == "not-text");
  CHECK(error_of("a: \xFF").code == "not-text");
  CHECK(error_of("a: \xC3").code == "not-text");
  CHECK(error_of(std::string(3 << 20, 'a')).code == "file-too-large");
  CHECK(error_of(std::string(60000, '[')).code == "yaml-syntax");
}
