// The report for machines: the JSON that report_schema() describes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "estimate/report.h"

namespace qlp {

/// When and where a report was made; only on request, so that equal jobs give equal bytes.
struct Stamp {
  std::string time;  ///< ISO 8601, UTC
  std::string host;
  std::string job_file;
};

/// JSON text with two blanks of indent and a newline at the end. Equal reports give equal bytes.
std::string report_json(const Report& report, std::string_view tool_version, const std::optional<Stamp>& stamp = {});

}  // namespace qlp
