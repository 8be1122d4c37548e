// What is counted about calls: launches, entry points that have no implementation, assumptions, and the failures that
// NULLGPU_FAIL asks for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace nullgpu {

/// A kernel or library call that is accepted and not run.
void count_launch();
unsigned long long launches();

/// A call of an entry point without an implementation, or for which this call is too much: `name` is a literal. Answers
/// "not supported".
int unsupported_call(const char* name);
/// The same, where the call has begun already.
int note_unsupported(const char* name);
/// A call of a library function whose results all lie on the device.
int launch_call(const char* name);

/// A query for sizes of workspaces: taken to be empty, and noted as an assumption.
int workspace_call(const char* name);
template <class... Sizes>
int size_call(const char* name, Sizes*... sizes) {
  const int status = workspace_call(name);
  if (status == 0) {
    ((sizes != nullptr ? void(*sizes = 0) : void()), ...);
  }
  return status;
}

/// Something was answered that is plausible rather than known. Kept once by its text, which must be a literal.
void assume(const char* what);

struct CallCount {
  const char* name;
  unsigned long long calls;
};
std::vector<CallCount> unsupported_calls();
std::vector<const char*> assumptions();
/// "cudaMalloc:17" for each failure that was injected.
std::vector<std::string> injected_failures();

/// The status with which this call of an entry point has to fail by NULLGPU_FAIL; 0: none.
int injected_failure(const char* entry_point);

}  // namespace nullgpu
