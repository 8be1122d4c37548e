#include "nullgpu/host_queue.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <pthread.h>

namespace nullgpu {
namespace {

struct Queue {
  std::mutex mutex;
  std::condition_variable added;
  std::condition_variable finished;
  std::deque<std::function<void()>> waiting;
  std::uint64_t last = 0;
  std::atomic<std::uint64_t> done{0};
  bool running = false;
};

Queue& queue() {
  static Queue* const kQueue = new Queue;
  return *kQueue;
}

void* work(void*) {
  Queue& q = queue();
  std::unique_lock lock(q.mutex);
  for (;;) {
    q.added.wait(lock, [&] { return !q.waiting.empty(); });
    const std::function<void()> function = std::move(q.waiting.front());
    q.waiting.pop_front();
    lock.unlock();
    function();
    lock.lock();
    q.done.fetch_add(1);
    q.finished.notify_all();
  }
}

}  // namespace

std::uint64_t queue_host_work(std::function<void()> function) {
  Queue& q = queue();
  const std::lock_guard lock(q.mutex);
  if (!q.running) {
    pthread_t thread{};
    if (pthread_create(&thread, nullptr, work, nullptr) != 0) {
      function();
      return q.last;
    }
    pthread_detach(thread);
    q.running = true;
  }
  q.waiting.push_back(std::move(function));
  q.added.notify_one();
  return ++q.last;
}

std::uint64_t last_host_work() {
  Queue& q = queue();
  const std::lock_guard lock(q.mutex);
  return q.last;
}

bool host_work_done(std::uint64_t number) { return queue().done.load() >= number; }

void wait_for_host_work(std::uint64_t number) {
  Queue& q = queue();
  if (q.done.load() >= number) {
    return;
  }
  std::unique_lock lock(q.mutex);
  q.finished.wait(lock, [&] { return q.done.load() >= number; });
}

void lock_host_queue() { queue().mutex.lock(); }
void unlock_host_queue() { queue().mutex.unlock(); }

}  // namespace nullgpu
