#include "config/file_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "base/file_descriptor.h"

namespace qlp {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestText = 64ULL << 20;
constexpr std::chrono::milliseconds kLongestWait{50};

Unexpected<Diagnostics> cannot_read(std::string code, const std::string& path, const std::string& reason) {
  return {{{Severity::error, std::move(code), "cannot read " + path + ": " + reason, "", {path, 0, 0}, ""}}};
}

/// Whether this is a pipe of which nobody holds the other end, nor comes to it within this time. `bytes` gets what was
/// read to find out: without waiting, read() tells a pipe without a writer (the end of the file) from a silent one.
bool is_abandoned_pipe(const FileDescriptor& file, std::chrono::milliseconds patience, std::string& bytes) {
  struct stat status {};
  if (fstat(file.number(), &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
  pollfd change{.fd = file.number(), .events = POLLIN, .revents = 0};
  // In pieces: one that a signal interrupts, as where the program is stopped and goes on, is waited for again.
  for (auto left = patience; left.count() > 0;) {
    const auto piece = std::min(left, kLongestWait);
    const int ready = poll(&change, 1, static_cast<int>(piece.count()));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return false;
    if (ready == 0) left -= piece;
  }
  char first = 0;
  const ssize_t count = ::read(file.number(), &first, 1);
  if (count > 0) bytes.push_back(first);
  return count == 0;
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
  // Opening a pipe would wait for whoever writes into it.
  const FileDescriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!file.is_open()) return Unexpected{std::string(std::strerror(errno))};
  std::string bytes;
  if (is_abandoned_pipe(file, patience_, bytes))
    return Unexpected{std::string("it is a pipe into which nobody writes")};
  fcntl(file.number(), F_SETFL, O_RDONLY);  // whoever holds the other end is waited for
  constexpr std::uint64_t kChunk = 1U << 16;
  while (bytes.size() < most) {
    const auto had = bytes.size();
    const auto wanted = std::min(kChunk, most - had);
    bytes.resize(had + wanted);
    const ssize_t count = ::read(file.number(), bytes.data() + had, wanted);
    bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) break;
    if (count < 0 && errno != EINTR) return Unexpected{std::string(std::strerror(errno))};
  }
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
