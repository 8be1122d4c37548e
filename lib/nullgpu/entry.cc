#include "nullgpu/entry.h"

#include <atomic>
#include <cstdlib>
#include <pthread.h>

#include "nullgpu/lifetime.h"

namespace nullgpu {
namespace {

std::atomic<bool> g_used{false};
std::atomic<bool> g_forked{false};

}  // namespace

void mark_used() {
  if (g_used.load(std::memory_order_relaxed)) {
    return;
  }
  if (!g_used.exchange(true)) {
    watch_process_end();
    pthread_atfork(lock_for_fork, unlock_after_fork, [] {
      unlock_after_fork();
      g_forked.store(true, std::memory_order_relaxed);
    });
  }
}

bool in_forked_child() { return g_forked.load(std::memory_order_relaxed); }

int& last_error() {
  static thread_local int error = ok;
  return error;
}

}  // namespace nullgpu
