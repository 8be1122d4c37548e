// leave 0|1: what _Py_IsFinalizing() says. A thread ends itself below a function that may not throw, as Python's
// threads do when the interpreter is over; prints whether it ended. Started with the null GPU preloaded.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <pthread.h>
#include <thread>

namespace {

int g_finalizing = 0;
std::promise<void> g_there;

void take_interpreter() {
  g_there.set_value();
  pthread_exit(nullptr);
}

void destructor() noexcept { take_interpreter(); }

void* in_a_destructor(void*) {
  destructor();
  return nullptr;
}

void* plainly(void* value) { pthread_exit(value); }

}  // namespace

extern "C" int _Py_IsFinalizing() { return g_finalizing; }  // NOLINT: Python's name

int main(int argc, char** argv) {
  pthread_t thread{};
  g_finalizing = argc > 1 ? std::atoi(argv[1]) : 0;
  if (g_finalizing != 0) {
    pthread_create(&thread, nullptr, in_a_destructor, nullptr);
    g_there.get_future().wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::puts("waits");
    return 0;
  }
  void* value = nullptr;
  pthread_create(&thread, nullptr, plainly, &g_finalizing);
  pthread_join(thread, &value);
  std::puts(value == &g_finalizing ? "ended" : "lost");
  return 0;
}
