#include "app/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "app/output.h"

namespace qlp::app {

namespace fs = std::filesystem;

fs::path temporary_root() {
  std::error_code error;
  fs::path root = fs::temp_directory_path(error);
  if (error) throw OutputError{"no folder for temporary files (TMPDIR): " + error.message()};
  return root;
}

TemporaryFolder::TemporaryFolder(const std::string& purpose) {
  const fs::path root = temporary_root();
  std::string name = (root / ("qlora-plan-" + purpose + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr)
    throw OutputError{"cannot make a folder in " + root.string() + ": " + std::generic_category().message(errno)};
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code none;
  fs::remove_all(path_, none);
}

}  // namespace qlp::app
