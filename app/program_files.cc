#include "app/program_files.h"

#include <filesystem>

namespace qlp::app {

std::string executable_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string program_file(std::string_view name) {
  const std::filesystem::path program = executable_path();
  return (program.parent_path().parent_path() / "lib" / "qlora-plan" / name).string();
}

}  // namespace qlp::app
