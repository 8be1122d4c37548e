// When and where the program runs, for those who ask for it.
#pragma once

#include <string>

#include "report/report_json.h"

namespace qlp::app {

Stamp stamp_of(const std::string& job_file);

}  // namespace qlp::app
