#include "app/temporary_folder.h"

#include <cstdlib>

#include "app/output.h"

namespace qlp::app {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(const std::string& purpose) {
  std::string name = (fs::temp_directory_path() / ("qlora-plan-" + purpose + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr)
    throw OutputError{"cannot make a folder in " + fs::temp_directory_path().string()};
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code none;
  fs::remove_all(path_, none);
}

}  // namespace qlp::app
