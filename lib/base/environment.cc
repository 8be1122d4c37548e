#include "base/environment.h"

namespace qlp {

std::vector<std::string> lines_of(const Environment& environment) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : environment) lines.push_back(std::string(name).append("=").append(value));
  return lines;
}

}  // namespace qlp
