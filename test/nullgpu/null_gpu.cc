#include "nullgpu/null_gpu.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

namespace null_gpu {
namespace {

int g_failures = -1;  // the pipe to the test
void* g_library = nullptr;

}  // namespace

void fail(const char* file, int line, const std::string& message) {
  const std::string text = std::string(file) + ":" + std::to_string(line) + ": " + message + "\n";
  if (write(g_failures, text.data(), text.size()) < 0) {
    _exit(1);
  }
}

void* entry_point(const char* name) {
  void* const p = dlsym(g_library, name);
  if (p == nullptr) {
    fail(name, 0, "is not an entry point");
    _exit(0);
  }
  return p;
}

void run(const Variables& variables, const std::function<void()>& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(ends[0]);
    g_failures = ends[1];
    for (const auto& [name, value] : variables) {
      setenv(name.c_str(), value.c_str(), 1);
    }
    g_library = dlopen(QLP_NULLGPU, RTLD_NOW | RTLD_LOCAL);
    if (g_library == nullptr) {
      fail(QLP_NULLGPU, 0, dlerror());
    } else {
      body();
    }
    _exit(0);
  }
  close(ends[1]);
  std::string failures;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    failures.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK_MESSAGE(failures.empty(), failures);
  CHECK_MESSAGE((WIFEXITED(status) && WEXITSTATUS(status) == 0), "the process ended with status ", status);
}

std::string output(const std::string& command, const std::string& variables) {
  const std::string line = variables + " LD_PRELOAD=" QLP_NULLGPU_PRELOAD " " QLP_NULLGPU_PROGRAMS "/" + command;
  std::FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[1024];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) {
    text += buffer;
  }
  CHECK(pclose(pipe) == 0);
  return text;
}

}  // namespace null_gpu
