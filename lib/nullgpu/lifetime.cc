#include "nullgpu/lifetime.h"

#include <atomic>
#include <cstdlib>
#include <sys/syscall.h>
#include <unistd.h>

#include "nullgpu/books.h"
#include "nullgpu/entry.h"
#include "nullgpu/host_queue.h"
#include "nullgpu/nullgpu.h"
#include "nullgpu/settings.h"

namespace nullgpu {
namespace {

// The process that used the GPU; 0 once its report is written. A child of vfork() shares this memory, and is not it.
std::atomic<pid_t> g_process{0};

std::string report_path() {
  std::string path = settings().report;
  const std::size_t mark = path.find("%p");
  return mark == std::string::npos ? path : path.replace(mark, 2, std::to_string(getpid()));
}

}  // namespace

void watch_process_end() { g_process.store(getpid()); }

void write_report_at_end() {
  pid_t process = getpid();
  if (g_process.compare_exchange_strong(process, 0) && !settings().report.empty()) {
    nullgpu_write_report(report_path().c_str());
  }
}

void lock_for_fork() {
  Books::get().lock();
  lock_host_queue();
}

void unlock_after_fork() {
  unlock_host_queue();
  Books::get().unlock();
}

}  // namespace nullgpu

namespace {

// After the program's own destructors and atexit functions: this library was loaded first.
__attribute__((destructor)) void at_exit() { nullgpu::write_report_at_end(); }

[[noreturn]] void end(int status) {
  nullgpu::write_report_at_end();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

}  // namespace

// os._exit() of Python comes here, and so does the child of a fork that did not exec.
QLP_EXPORT void _exit(int status) { end(status); }
QLP_EXPORT void _Exit(int status) { end(status); }
