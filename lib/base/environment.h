// The variables that a program starts with.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace qlp {

using Environment = std::map<std::string, std::string>;

/// "NAME=value" each, as programs take them.
std::vector<std::string> lines_of(const Environment& environment);

}  // namespace qlp
