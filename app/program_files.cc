#include "app/program_files.h"

#include <filesystem>
#include <unistd.h>

namespace qlp::app {

std::string executable_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

Environment environment_of_process() {
  Environment out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

std::string program_file(std::string_view name) {
  const std::filesystem::path program = executable_path();
  return (program.parent_path().parent_path() / "lib" / "qlora-plan" / name).string();
}

}  // namespace qlp::app
