#include "base/file_descriptor.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace qlp {

void FileDescriptor::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

Result<Pipe, std::string> open_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Unexpected{std::string{"pipe: "} + std::strerror(errno)};
  return Pipe{FileDescriptor{ends[0]}, FileDescriptor{ends[1]}};
}

bool read_available(FileDescriptor& file, std::string& text) {
  std::array<char, 65536> buffer{};
  pollfd ready{.fd = file.number(), .events = POLLIN, .revents = 0};
  while (poll(&ready, 1, 0) > 0) {
    const ssize_t count = read(file.number(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return true;
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace qlp
