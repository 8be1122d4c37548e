// A folder for the time of a run, gone with its owner.
#pragma once

#include <filesystem>
#include <string>

namespace qlp::app {

/// The system's folder for temporary files. Throws OutputError where there is none.
std::filesystem::path temporary_root();

class TemporaryFolder {
 public:
  /// `purpose` is a part of its name. Throws OutputError where it cannot be made.
  explicit TemporaryFolder(const std::string& purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace qlp::app
