#include "base/process_keeper.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace qlp {
namespace {

/// Everything else that is open keeps others waiting for its end.
void close_all_files() {
  if (close_range(0, ~0U, 0) == 0) return;
  for (long number = sysconf(_SC_OPEN_MAX); number-- > 0;) close(static_cast<int>(number));
}

/// Kills the children that there are now; theirs become ours as they die (PR_SET_CHILD_SUBREAPER). False: the kernel
/// does not tell which there are.
bool kill_children() {
  const int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 4096> text{};
  pid_t child = 0;
  for (ssize_t count = 0; (count = read(file, text.data(), text.size())) > 0;)
    for (ssize_t i = 0; i < count; ++i) {
      const char letter = text[static_cast<std::size_t>(i)];
      if (letter >= '0' && letter <= '9') {
        child = child * 10 + (letter - '0');
      } else {
        if (child > 0) kill(child, SIGKILL);
        child = 0;
      }
    }
  close(file);
  return true;
}

void end_all() {
  while (kill_children() && (waitpid(-1, nullptr, 0) > 0 || errno == EINTR)) {
  }
}

[[noreturn]] void end_by(int number) {
  const rlimit none{};
  setrlimit(RLIMIT_CORE, &none);  // the program has left its own
  std::signal(number, SIG_DFL);
  sigset_t all;
  sigfillset(&all);
  kill(getpid(), number);
  sigprocmask(SIG_UNBLOCK, &all, nullptr);
  _exit(127);
}

[[noreturn]] void end_as(int status) {
  if (WIFSIGNALED(status)) end_by(WTERMSIG(status));
  _exit(WEXITSTATUS(status));
}

}  // namespace

bool become_keeper(pid_t parent) {
  setpgid(0, 0);
  std::signal(SIGCHLD, SIG_DFL);  // where it is ignored nobody hears how a child ended
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || prctl(PR_SET_PDEATHSIG, keeper_end_signal()) != 0) return false;
  if (getppid() != parent) return errno = ESRCH, false;  // it died before we asked
  return true;
}

void keep(pid_t program) {
  close_all_files();
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, keeper_end_signal());
  for (;;) {
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
      if (ended != program) continue;  // an orphan of its
      end_all();
      end_as(status);
    }
    if (sigwaitinfo(&awaited, nullptr) == keeper_end_signal()) {
      end_all();
      end_by(SIGKILL);
    }
  }
}

}  // namespace qlp
