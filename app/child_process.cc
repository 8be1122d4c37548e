#include "app/child_process.h"

#include <algorithm>
#include <chrono>
#include <poll.h>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>

extern char** environ;  // NOLINT(readability-redundant-declaration): glibc declares it for GNU sources only

namespace qlp::app {
namespace {

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  const auto replaced = [&](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('=') + 1);
    return std::ranges::any_of(more, [&](std::string_view other) { return other.starts_with(name); });
  };
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!replaced(*entry)) all.emplace_back(*entry);
  return all;
}

}  // namespace

Result<ChildAnswer, std::string> run_for_answer(std::vector<std::string> command,
                                                const std::vector<std::string>& more) {
  auto pipe = open_pipe();
  if (!pipe) return Unexpected{pipe.error()};
  const std::string name = command.front();
  auto child =
      Subprocess::start({.arguments = std::move(command),
                         .environment = environment_with(more),
                         .directory = "",
                         .files = {{STDOUT_FILENO, pipe->write_end.number()}, {STDERR_FILENO, STDERR_FILENO}}});
  if (!child) return Unexpected{"cannot run " + name + ": " + child.error()};
  pipe->write_end.close();
  ChildAnswer answer;
  for (bool open = true; open;) {
    pollfd wait{pipe->read_end.number(), POLLIN, 0};
    if (poll(&wait, 1, -1) > 0) open = read_available(pipe->read_end, answer.output);
  }
  for (auto end = child->poll();; end = child->poll()) {
    if (end) {
      answer.end = *end;
      return answer;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

}  // namespace qlp::app
