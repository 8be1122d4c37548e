// The JSON Schema (2020-12) of the report.
#pragma once

#include <string>

namespace qlp {

/// The schema as JSON text with a newline at the end.
std::string report_schema();

}  // namespace qlp
