// What a search found, for machines: the property "search" of report_schema().
#pragma once

#include <string>
#include <string_view>

#include "estimate/search.h"

namespace qlp {

/// JSON text with two blanks of indent and a newline at the end. Equal reports give equal bytes.
std::string search_json(const SearchReport& report, std::string_view tool_version);

}  // namespace qlp
