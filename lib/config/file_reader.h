// Where the readers get files from: the disk, or a test's table of texts.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace qlp {

class FileReader {
 public:
  enum class Kind : std::uint8_t { missing, file, directory };

  virtual ~FileReader() = default;

  virtual Kind kind_of(const std::string& path) const = 0;
  /// The first `most` bytes of a file, fewer where it is shorter. The error says why it cannot be read.
  virtual Result<std::string, std::string> read(const std::string& path, std::uint64_t most) const = 0;
  /// Names of the files in a directory, sorted; none where there is no such directory.
  virtual std::vector<std::string> list(const std::string& directory) const = 0;
};

class DiskFiles : public FileReader {
 public:
  /// `patience`: how long a pipe is waited for that nobody has open for writing.
  explicit DiskFiles(std::chrono::milliseconds patience = std::chrono::seconds{5}) : patience_(patience) {}

  Kind kind_of(const std::string& path) const override;
  Result<std::string, std::string> read(const std::string& path, std::uint64_t most) const override;
  std::vector<std::string> list(const std::string& directory) const override;

 private:
  std::chrono::milliseconds patience_;
};

/// A whole text file. Errors: "cannot-read", "file-too-large" (past 64 MiB).
Result<std::string> read_text(const std::string& path, const FileReader& files);

/// `path` as seen from the folder of `from_file`; an absolute one as it is.
std::string path_beside(const std::string& from_file, const std::string& path);

}  // namespace qlp
