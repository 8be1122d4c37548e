// The models that are known by name, as text.
#pragma once

#include <string>

namespace qlp {

std::string models_text();  ///< a name a line
std::string models_json();  ///< an array of names

}  // namespace qlp
