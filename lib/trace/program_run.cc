#include "trace/program_run.h"

#include <csignal>
#include <optional>
#include <poll.h>
#include <utility>

namespace qlp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNap{50};
constexpr std::size_t kKeptBytes = 16384;
constexpr std::size_t kKeptLines = 20;

std::string last_lines(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::size_t begin = text.size();
  for (std::size_t lines = 0; lines < kKeptLines; ++lines) {
    const std::size_t end_of_previous = begin == 0 ? std::string_view::npos : text.rfind('\n', begin - 1);
    if (end_of_previous == std::string_view::npos) return std::string{text};
    begin = end_of_previous;
  }
  return std::string{text.substr(begin + 1)};
}

class Watch {
 public:
  Watch(Subprocess process, FileDescriptor output, const ProgramOptions& options)
      : process_(std::move(process)), output_(std::move(output)), options_(options), alive_(options.clock()) {}

  ProgramRun run() {
    std::uint64_t progress = options_.progress();
    while (!look()) {
      if (options_.interrupted()) return finish(RunEnd::interrupted);
      if (const std::uint64_t now = options_.progress(); now != progress) {
        progress = now;
        alive_ = options_.clock();
      }
      if (options_.patience.count() != 0 && options_.clock() - alive_ > options_.patience) {
        process_.send(SIGUSR2);
        wait(options_.grace);
        return finish(RunEnd::hung);
      }
    }
    return {.how = RunEnd::ended, .end = *end_, .message = {}, .output = last_lines(kept_)};
  }

 private:
  /// Whether it has ended; if so all that it printed has passed.
  bool look() {
    pollfd file{.fd = output_.number(), .events = POLLIN, .revents = 0};
    poll(&file, output_.is_open() ? 1 : 0, static_cast<int>(kNap.count()));
    end_ = process_.poll();  // looked at before its last words are read: they are all there then
    std::string text;
    if (output_.is_open() && !read_available(output_, text)) output_.close();
    if (!text.empty()) {
      options_.on_output(text);
      alive_ = options_.clock();
      kept_ += text;
      if (kept_.size() > kKeptBytes) kept_.erase(0, kept_.size() - kKeptBytes);
    }
    return end_.has_value();
  }

  void wait(milliseconds time) {
    const milliseconds until = options_.clock() + time;
    while (!look() && options_.clock() < until) {
    }
  }

  ProgramRun finish(RunEnd how) {
    process_.send(SIGTERM);
    wait(options_.grace);
    process_.kill();
    look();
    return {.how = how, .end = {}, .message = {}, .output = last_lines(kept_)};
  }

  Subprocess process_;
  FileDescriptor output_;
  const ProgramOptions& options_;
  milliseconds alive_;
  std::string kept_;
  std::optional<ProgramEnd> end_;
};

ProgramRun not_started(const std::string& why) {
  return {.how = RunEnd::not_started, .end = {}, .message = why, .output = {}};
}

}  // namespace

ProgramRun run_program(Program program, const ProgramOptions& options) {
  auto output = open_pipe();
  if (!output) return not_started(output.error());
  program.files = {{0, 0}, {1, output->write_end.number()}, {2, output->write_end.number()}};
  auto started = Subprocess::start(program);
  if (!started) return not_started(started.error());
  output->write_end.close();
  return Watch{std::move(*started), std::move(output->read_end), options}.run();
}

}  // namespace qlp
