#include "app/output.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace qlp::app {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw OutputError{"cannot write " + path + ": " + std::strerror(error)};
}

/// Writes everything, or returns the error.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// The permissions that a new file gets; mkstemp gives its own to the owner only.
mode_t default_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/// Of a link the file that it leads to: the link stays.
std::string file_behind(const std::string& path) {
  std::error_code status;
  const auto target = std::filesystem::canonical(path, status);
  return status ? path : target.string();
}

void write_file(const std::string& path, std::string_view text) {
  std::string temporary = path + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) fail(path, errno);
  int error = write_all(file, text);
  if (error == 0 && fchmod(file, default_mode()) != 0) error = errno;
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  unlink(temporary.c_str());
  fail(path, error);
}

/// A pipe or a device has no place beside it, and takes the text as it comes. So does a link to what is not there yet.
bool is_special(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
  return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

}  // namespace

void write_stdout(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error != 0) fail("stdout", error);
}

void write_stderr(std::string_view text) { write_all(STDERR_FILENO, text); }

void write_result(const std::string& path, std::string_view text) {
  if (path == "-") return write_stdout(text);
  if (!is_special(path)) return write_file(file_behind(path), text);
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) fail(path, errno);
  int error = write_all(fileno(file), text);
  if (std::fclose(file) != 0 && error == 0) error = errno;
  if (error != 0) fail(path, error);
}

}  // namespace qlp::app
