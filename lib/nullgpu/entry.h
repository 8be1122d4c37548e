// What every entry point does around its own work.
#pragma once

#include "nullgpu/calls.h"
#include "nullgpu/device.h"
#include "nullgpu/status.h"

#define QLP_EXPORT extern "C" __attribute__((visibility("default")))

namespace nullgpu {

/// The process has used the GPU: it writes a report when it ends, and what it forks cannot use the GPU. (Asking NVML or
/// for a version is no use: programs do that before they fork.)
void mark_used();
/// This process was forked from one that had used the GPU: CUDA answers "initialization error" there.
bool in_forked_child();

/// The runtime's error of this thread that cudaGetLastError gives and clears.
int& last_error();

namespace detail {

template <class Work>
int run(const char* name, Work&& work) {
  mark_used();
  if (in_forked_child()) {
    return not_initialized;
  }
  if (const int failure = injected_failure(name)) {
    return failure;
  }
  return work();
}

}  // namespace detail

/// A call of the runtime that needs a context on the current device.
template <class Work>
int runtime(const char* name, Work&& work) {
  const int status = detail::run(name, [&] {
    if (const int missing = use_current_device()) {
      return missing;
    }
    return static_cast<int>(work());
  });
  if (status != ok) {
    last_error() = status;
  }
  return status;
}

/// A call of the runtime that only asks.
template <class Work>
int runtime_query(const char* name, Work&& work) {
  const int status = detail::run(name, [&] { return static_cast<int>(work()); });
  if (status != ok) {
    last_error() = status;
  }
  return status;
}

/// A call of the driver.
template <class Work>
int driver(const char* name, Work&& work) {
  return detail::run(name, [&] { return static_cast<int>(work()); });
}

/// A call that asks without using the GPU.
template <class Work>
int query(const char* name, Work&& work) {
  const int failure = injected_failure(name);
  return failure != 0 ? failure : static_cast<int>(work());
}

/// A call of a library, whose statuses are its own.
template <class Work>
int library(const char* name, Work&& work) {
  return driver(name, work);
}

}  // namespace nullgpu
