// Files that are only in memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/file_reader.h"

namespace qlp::test {

class MemoryFiles : public FileReader {
 public:
  MemoryFiles() = default;
  explicit MemoryFiles(std::map<std::string, std::string> files) : files_(std::move(files)) {}

  Kind kind_of(const std::string& path) const override {
    if (files_.contains(path)) return Kind::file;
    return list(path).empty() ? Kind::missing : Kind::directory;
  }
  Result<std::string, std::string> read(const std::string& path, std::uint64_t most) const override {
    const auto file = files_.find(path);
    if (file == files_.end()) return Unexpected{std::string("there is no such file")};
    return file->second.substr(0, most);
  }
  std::vector<std::string> list(const std::string& directory) const override {
    std::vector<std::string> names;
    for (const auto& [path, text] : files_)
      if (path.starts_with(directory + "/")) names.push_back(path.substr(directory.size() + 1));
    return names;
  }

 private:
  std::map<std::string, std::string> files_;
};

}  // namespace qlp::test
