// Threads that ask for Python's interpreter while it ends.
//
// Up to Python 3.13 such a thread ends itself by pthread_exit() (Python/pythread_pthread.h, PyThread_exit_thread; 3.14
// lets it wait for the end of the process instead, gh-87135). That unwinds its frames, and where one of them is C++
// that may not throw, as a destructor is, it takes the process with it: "terminate called without an active exception".
// A thread of autograd's that drops the last reference to a Python object comes here when the program is over in that
// moment. So it waits, as it does from 3.14 on.

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "nullgpu/entry.h"
#include "nullgpu/interpose.h"

namespace nullgpu {
namespace {

bool python_ends() {
  for (const char* name : {"Py_IsFinalizing", "_Py_IsFinalizing"}) {  // since 3.13, and before
    if (void* const p = real_dlsym(RTLD_DEFAULT, name)) {
      return reinterpret_cast<int (*)()>(p)() != 0;
    }
  }
  return false;
}

}  // namespace
}  // namespace nullgpu

QLP_EXPORT void pthread_exit(void* value) {
  while (nullgpu::python_ends()) {
    pause();
  }
  reinterpret_cast<void (*)(void*)>(nullgpu::real_dlsym(RTLD_NEXT, "pthread_exit"))(value);
  __builtin_unreachable();
}
