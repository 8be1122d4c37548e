// Diagnostics as a compiler prints them: file:line:column: error: key.path: message, the line, and a caret.
#pragma once

#include <string>

#include "base/diagnostic.h"

namespace qlp::app {

/// A text of lines; the lines of the files that the diagnostics name are read again and shown.
std::string diagnostics_text(const Diagnostics& diagnostics, bool colors);

}  // namespace qlp::app
