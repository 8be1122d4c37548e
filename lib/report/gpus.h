// The GPU catalogue as text.
#pragma once

#include <string>

namespace qlp {

/// A row for each GPU; `verbose` adds where each figure is from.
std::string gpus_table(bool colors, bool verbose);

/// The same as a JSON array.
std::string gpus_json();

}  // namespace qlp
