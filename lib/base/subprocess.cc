#include "base/subprocess.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process_keeper.h"

namespace qlp {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

/// What happens between fork and exec: calls that are safe in a signal handler, and no others.
class Child {
 public:
  Child(const Program& program, int report) : program_(program), report_(report) {
    arguments_ = pointers(program.arguments);
    environment_ = pointers(program.environment);
    for (const HandedFile& file : program.files) highest_ = std::max({highest_, file.number, file.ours});
  }

  /// Becomes the keeper of the program, or tells errno to the pipe and ends.
  [[noreturn]] void run(pid_t parent) {
    if (!become_keeper(parent)) fail();
    const pid_t keeper = getpid();
    const pid_t program = fork();
    if (program < 0) fail();
    if (program > 0) keep(program);
    if (prepare(keeper)) execvpe(arguments_.front(), arguments_.data(), environment_.data());
    fail();
  }

 private:
  [[noreturn]] void fail() const {
    const int error = errno;
    [[maybe_unused]] const ssize_t told = write(report_, &error, sizeof error);
    _exit(127);
  }

  bool prepare(pid_t keeper) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    if (getppid() != keeper) return errno = ESRCH, false;  // it died before we asked
    for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (!program_.directory.empty() && chdir(program_.directory.c_str()) != 0) return false;
    return hand_over_files();
  }

  /// First all of them out of each other's way, then each to its number.
  bool hand_over_files() {
    report_ = fcntl(report_, F_DUPFD_CLOEXEC, highest_ + 1);
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (report_ < 0 || nothing < 0) return false;
    const int no_file = fcntl(nothing, F_DUPFD_CLOEXEC, highest_ + 1);
    const int first = fcntl(nothing, F_DUPFD_CLOEXEC, highest_ + 1);
    if (no_file < 0 || first < 0) return false;
    for (std::size_t i = 0; i < program_.files.size(); ++i)  // at first + 1, first + 2, ...
      if (dup3(program_.files[i].ours, first + 1 + static_cast<int>(i), O_CLOEXEC) < 0) return false;
    for (int standard = 0; standard < 3; ++standard)
      if (dup2(no_file, standard) < 0) return false;
    for (std::size_t i = 0; i < program_.files.size(); ++i)
      if (dup2(first + 1 + static_cast<int>(i), program_.files[i].number) < 0) return false;
    return true;
  }

  const Program& program_;
  std::vector<char*> arguments_, environment_;
  int report_;
  int highest_ = 2;
};

}  // namespace

std::string ProgramEnd::text() const {
  if (signal == 0) return "exit status " + std::to_string(code);
  const char* name = sigdescr_np(signal);
  return "signal " + std::to_string(signal) + (name == nullptr ? "" : std::string{" ("} + name + ")");
}

Result<Subprocess, std::string> Subprocess::start(const Program& program) {
  auto report = open_pipe();
  if (!report) return Unexpected{report.error()};
  Child child(program, report->write_end.number());
  const pid_t parent = getpid();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) child.run(parent);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return Unexpected{std::string{"fork: "} + std::strerror(errno)};
  Subprocess started(pid);
  setpgid(pid, pid);  // as the keeper does: whoever comes first
  report->write_end.close();
  int error = 0;
  ssize_t count = 0;
  do count = read(report->read_end.number(), &error, sizeof error);
  while (count < 0 && errno == EINTR);
  if (count != sizeof error) return started;  // the pipe closed as the program began
  return Unexpected{program.arguments.front() + ": " + std::strerror(error)};
}

Subprocess::~Subprocess() {
  if (pid_ > 0 && !end_) kill();
}

std::optional<ProgramEnd> Subprocess::poll() {
  if (end_) return end_;
  siginfo_t seen{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &seen, WEXITED | WNOHANG | WNOWAIT) != 0 || seen.si_pid == 0)
    return std::nullopt;
  return reap();
}

void Subprocess::send(int signal) {
  if (!end_) ::kill(-pid_, signal);
}

ProgramEnd Subprocess::kill() {
  if (end_) return *end_;
  ::kill(pid_, keeper_end_signal());
  return reap();
}

ProgramEnd Subprocess::reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  end_ = WIFSIGNALED(status) ? ProgramEnd{.code = 0, .signal = WTERMSIG(status)}
                             : ProgramEnd{.code = WEXITSTATUS(status), .signal = 0};
  return *end_;
}

}  // namespace qlp
