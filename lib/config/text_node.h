// A YAML or JSON file as a tree in which every value knows its place. Scalars stay text until a reader asks for a type.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/result.h"

namespace qlp {

enum class NodeKind : std::uint8_t { null, scalar, sequence, map };

struct TextNode;
/// Parts of a tree may be in several places at once: YAML's aliases, keys of one file laid over another.
using NodePtr = std::shared_ptr<const TextNode>;

struct Entry {
  std::string key;
  Position key_position;
  NodePtr value;
};

struct TextNode {
  NodeKind kind = NodeKind::null;
  Position position;
  std::string text;            ///< of a scalar
  bool quoted = false;         ///< a scalar that can only be text: "80", '80'
  std::vector<NodePtr> items;  ///< of a sequence
  std::vector<Entry> entries;  ///< of a map, in the file's order, duplicates included
};

/// The value under a key; of duplicates the last, as Python reads JSON. Null pointer where there is none.
const TextNode* find(const TextNode& map, std::string_view key);

/// "a map", "the text 'abc'", "null": what was found, for messages.
std::string describe(const TextNode& node);

/// Typed readings of one value. Integers are decimal digits without leading zeros, numbers are finite, booleans are
/// true and false. The error says what is wrong and what was expected.
Result<std::int64_t, std::string> integer_of(const TextNode& node);
Result<double, std::string> number_of(const TextNode& node);
Result<bool, std::string> boolean_of(const TextNode& node);
Result<std::string, std::string> text_of(const TextNode& node);

}  // namespace qlp
