#include "config/file_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace qlp {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestText = 64ULL << 20;

Unexpected<Diagnostics> cannot_read(std::string code, const std::string& path, const std::string& reason) {
  return {{{Severity::error, std::move(code), "cannot read " + path + ": " + reason, "", {path, 0, 0}, ""}}};
}

}  // namespace

FileReader::Kind DiskFiles::kind_of(const std::string& path) const {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (error || !fs::exists(status)) return Kind::missing;
  return fs::is_directory(status) ? Kind::directory : Kind::file;
}

Result<std::string, std::string> DiskFiles::read(const std::string& path, std::uint64_t most) const {
  const auto kind = kind_of(path);
  if (kind == Kind::missing) return Unexpected{std::string("there is no such file")};
  if (kind == Kind::directory) return Unexpected{std::string("it is a directory")};
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return Unexpected{std::string(errno != 0 ? std::strerror(errno) : "it does not open")};
  std::string bytes;
  constexpr std::uint64_t kChunk = 1U << 16;
  while (stream && bytes.size() < most) {
    const auto had = bytes.size();
    const auto wanted = std::min(kChunk, most - had);
    bytes.resize(had + wanted);
    stream.read(bytes.data() + had, static_cast<std::streamsize>(wanted));
    bytes.resize(had + static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) return Unexpected{std::string("reading it failed")};
  return bytes;
}

std::vector<std::string> DiskFiles::list(const std::string& directory) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> read_text(const std::string& path, const FileReader& files) {
  auto text = files.read(path, kLargestText + 1);
  if (!text) return cannot_read("cannot-read", path, text.error());
  if (text->size() > kLargestText) return cannot_read("file-too-large", path, "it is larger than 64 MiB");
  return std::move(*text);
}

std::string path_beside(const std::string& from_file, const std::string& path) {
  return (fs::path(from_file).parent_path() / path).lexically_normal().string();
}

}  // namespace qlp
