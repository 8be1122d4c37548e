#include "verify/supervisor.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace qlp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestNap{50};
constexpr std::size_t kKeptOutput = 8192;
constexpr std::size_t kLongestLine = std::size_t{64} << 20;

std::string seconds(milliseconds span) {
  return std::to_string(span.count() / 1000) + (span.count() % 1000 == 0 ? "" : ".") +
         (span.count() % 1000 == 0 ? "" : std::to_string(span.count() % 1000 / 100)) + " s";
}

/// One rank from its start to its end.
class WatchedRank {
 public:
  WatchedRank(const RankProgram& program, milliseconds now) : last_word_(now) {
    record_.rank = program.rank;
    start(program);
  }

  const RankRecord& record() const { return record_; }
  bool is_running() const { return process_ && !ended_; }
  bool is_done() const { return record_.measurement.has_value(); }
  /// Decided, and for another reason than that all is well.
  bool has_failed() const { return failed_; }
  milliseconds last_word() const { return last_word_; }

  void wait_for(std::vector<pollfd>& files) const {
    for (const FileDescriptor* file : {&channel_, &output_})
      if (file->is_open()) files.push_back({.fd = file->number(), .events = POLLIN, .revents = 0});
  }

  /// Takes in all that it has told and written, then looks whether it still runs. A rendezvous it told is returned.
  std::optional<Rendezvous> look(const SupervisorOptions& options, milliseconds now, bool stopping) {
    // Looked at before its last words are read: those of one that has ended are then all there.
    const std::optional<ProgramEnd> end = is_running() ? process_->poll() : std::nullopt;
    read_output(options);
    std::optional<Rendezvous> rendezvous = read_channel(options, now);
    if (end) settle_end(*end, stopping);
    return rendezvous;
  }

  void tell(const Rendezvous& rendezvous) {
    const std::string line = to_line(rendezvous);
    if (channel_.is_open()) send(channel_.number(), line.data(), line.size(), MSG_NOSIGNAL);
  }

  void fail(RankEnd end, std::string message) {
    if (failed_) return;
    failed_ = true;
    record_.end = end, record_.message = std::move(message);
  }

  void signal(int number) {
    if (is_running()) process_->send(number);
  }

 private:
  void start(const RankProgram& program) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return fail(RankEnd::died, "could not be started: no socket pair");
    channel_ = FileDescriptor{ends[0]};
    const FileDescriptor theirs{ends[1]};
    auto output = open_pipe();
    if (!output) return fail(RankEnd::died, "could not be started: " + output.error());
    Program with_files = program.program;
    with_files.files.push_back({kRankChannel, theirs.number()});
    with_files.files.push_back({1, output->write_end.number()});
    with_files.files.push_back({2, output->write_end.number()});
    auto started = Subprocess::start(with_files);
    if (!started) return fail(RankEnd::died, "could not be started: " + started.error());
    process_.emplace(std::move(*started));
    output_ = std::move(output->read_end);
  }

  void read_output(const SupervisorOptions& options) {
    std::string text;
    if (output_.is_open() && !read_available(output_, text)) output_.close();
    if (text.empty()) return;
    options.on_output(record_.rank, text);
    record_.output += text;
    if (record_.output.size() > kKeptOutput) record_.output.erase(0, record_.output.size() - kKeptOutput);
  }

  std::optional<Rendezvous> read_channel(const SupervisorOptions& options, milliseconds now) {
    std::optional<Rendezvous> rendezvous;
    if (!channel_.is_open()) return rendezvous;
    if (!read_available(channel_, lines_.text())) channel_.close();
    while (const auto line = lines_.next()) {
      last_word_ = now;
      auto message = parse_line(*line);
      if (!message) {
        fail(RankEnd::died, "told what is no message: " + message.error());
        continue;
      }
      if (auto* found = std::get_if<Rendezvous>(&*message)) rendezvous = std::move(*found);
      take(std::move(*message), options);
    }
    if (lines_.text().size() > kLongestLine) fail(RankEnd::died, "told a line without an end");
    return rendezvous;
  }

  void take(RankMessage message, const SupervisorOptions& options) {
    if (const auto* hello = std::get_if<RankHello>(&message)) {
      if (hello->protocol != kProtocol || hello->rank != record_.rank)
        fail(RankEnd::died, "is rank " + std::to_string(hello->rank) + " and speaks protocol " +
                                std::to_string(hello->protocol) + ": another build of the program?");
    } else if (auto* state = std::get_if<RankState>(&message)) {
      record_.state = std::move(*state);
      options.on_state(record_);
    } else if (auto* failure = std::get_if<RankFailure>(&message)) {
      fail(failure->end, std::move(failure->message));
    } else if (auto* measurement = std::get_if<RankMeasurement>(&message)) {
      record_.measurement = std::move(*measurement);
    }
  }

  void settle_end(const ProgramEnd& end, bool stopping) {
    ended_ = true;
    channel_.close();
    if (failed_) return;
    if (end.succeeded() && is_done()) {
      record_.end = RankEnd::finished;
    } else if (stopping && (end.signal == SIGTERM || end.signal == SIGKILL)) {
      record_.end = RankEnd::stopped;
    } else {
      fail(RankEnd::died, (is_done() ? "after its result: " : "") + end.text());
    }
  }

  RankRecord record_;
  std::optional<Subprocess> process_;
  FileDescriptor channel_, output_;
  LineBuffer lines_;
  milliseconds last_word_;
  bool ended_ = false;
  bool failed_ = false;
};

class Supervisor {
 public:
  Supervisor(const std::vector<RankProgram>& programs, const SupervisorOptions& options) : options_(options) {
    ranks_.reserve(programs.size());
    for (const RankProgram& program : programs) ranks_.emplace_back(program, options.clock());
  }

  SupervisedRun run() {
    for (;;) {
      const milliseconds now = options_.clock();
      look(now);
      if (!stop_at_) look_for_failures(now);
      if (stop_at_) stop(now);
      exchange();
      if (std::ranges::none_of(ranks_, &WatchedRank::is_running)) break;
      nap();
    }
    return {.ranks = records(), .interrupted = interrupted_};
  }

 private:
  void look(milliseconds now) {
    for (WatchedRank& rank : ranks_)
      if (const auto found = rank.look(options_, now, asked_to_end_)) {
        if (options_.remote) options_.remote->publish(*found);
        pass_on(*found);
      }
    if (!options_.remote || passed_on_) return;
    if (const auto found = options_.remote->rendezvous()) pass_on(*found);
  }

  void pass_on(const Rendezvous& rendezvous) {
    passed_on_ = true;
    for (WatchedRank& rank : ranks_) rank.tell(rendezvous);
  }

  void look_for_failures(milliseconds now) {
    for (WatchedRank& rank : ranks_)
      if (rank.is_running() && now - rank.last_word() > options_.timeout)
        rank.fail(RankEnd::hung, "no word for " + seconds(now - rank.last_word()));
    interrupted_ = options_.interrupted();
    const bool elsewhere = options_.remote && options_.remote->failure();
    if (interrupted_)
      stop_at_ = now;
    else if (elsewhere || std::ranges::any_of(ranks_, &WatchedRank::has_failed))
      stop_at_ = now + options_.settle;
  }

  void stop(milliseconds now) {
    if (now < *stop_at_) return;
    if (!asked_to_end_)
      for (WatchedRank& rank : ranks_) rank.signal(SIGTERM);
    asked_to_end_ = true;
    if (now < *stop_at_ + options_.grace) return;
    for (WatchedRank& rank : ranks_) rank.signal(SIGKILL);
  }

  void exchange() {
    if (options_.remote) options_.remote->exchange(records(), stop_at_.has_value());
  }

  void nap() const {
    std::vector<pollfd> files;
    for (const WatchedRank& rank : ranks_) rank.wait_for(files);
    poll(files.data(), files.size(), static_cast<int>(kLongestNap.count()));
  }

  std::vector<RankRecord> records() const {
    std::vector<RankRecord> out;
    for (const WatchedRank& rank : ranks_) out.push_back(rank.record());
    return out;
  }

  const SupervisorOptions& options_;
  std::vector<WatchedRank> ranks_;
  std::optional<milliseconds> stop_at_;  ///< when the ranks are asked to end
  bool asked_to_end_ = false;
  bool interrupted_ = false;
  bool passed_on_ = false;
};

}  // namespace

SupervisedRun supervise(const std::vector<RankProgram>& programs, const SupervisorOptions& options) {
  return Supervisor(programs, options).run();
}

}  // namespace qlp
