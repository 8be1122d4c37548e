// JSON text to a tree of nodes with places.
#pragma once

#include <string>
#include <string_view>

#include "config/text_node.h"

namespace qlp {

/// Parses JSON as Python's json module does: Infinity, -Infinity and NaN are numbers (plain scalars here, so that only
/// a reader who asks for them meets them). Written for this, since a config.json needs both those and the place of
/// every value. Errors: "json-syntax" and "not-text" with line and column.
Result<NodePtr> parse_json(std::string_view text, const std::string& file);

}  // namespace qlp
