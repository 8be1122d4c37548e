// YAML text to a tree of nodes with places.
#pragma once

#include <string>
#include <string_view>

#include "config/text_node.h"

namespace qlp {

/// Parses one YAML document. Errors, with their place: "yaml-syntax", "not-text" (binary, not UTF-8), "file-too-large",
/// "empty-file". Anchors and aliases work; one that contains itself is an error, and none is ever copied.
Result<NodePtr> parse_yaml(std::string_view text, const std::string& file);

/// What is wrong with the bytes of a file that should be text, if anything: code "not-text".
Diagnostics check_text(std::string_view text, const std::string& file);

}  // namespace qlp
