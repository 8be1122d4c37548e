#include "nullgpu/calls.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <unistd.h>

#include "nullgpu/entry.h"
#include "nullgpu/settings.h"
#include "nullgpu/status.h"

namespace nullgpu {
namespace {

std::atomic<unsigned long long> g_launches{0};

struct Notes {
  std::mutex mutex;
  std::vector<CallCount> unsupported;
  std::map<std::string_view, std::size_t> place_of;  // in `unsupported`
  std::vector<const char*> assumptions;
  std::vector<std::string> injected;
};

Notes& notes() {
  static Notes* const kNotes = new Notes;
  return *kNotes;
}

struct Failure {
  unsigned long long call;  // the first that fails
  bool and_later;
  int status;  // 0: the library's own
};

struct Failures {
  std::multimap<std::string, Failure, std::less<>> wanted;
  std::mutex mutex;
  std::map<std::string, unsigned long long, std::less<>> calls;
};

[[noreturn]] void refuse(const std::string& item) {
  const std::string message = "nullgpu: NULLGPU_FAIL: \"" + item + "\" is not NAME:N, NAME:N+ or NAME:N=STATUS\n";
  (void)!write(STDERR_FILENO, message.data(), message.size());
  _exit(2);
}

Failures* read_failures() {
  auto* failures = new Failures;
  const std::string text = settings().fail;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos || colon == 0) {
      refuse(item);
    }
    char* rest = nullptr;
    Failure failure{std::strtoull(item.c_str() + colon + 1, &rest, 10), false, 0};
    if (*rest == '+') {
      failure.and_later = true;
      ++rest;
    }
    if (*rest == '=') {
      failure.status = static_cast<int>(std::strtol(rest + 1, &rest, 10));
    }
    if (*rest != '\0' || failure.call == 0) {
      refuse(item);
    }
    failures->wanted.emplace(item.substr(0, colon), failure);
  }
  return failures;
}

}  // namespace

void count_launch() { g_launches.fetch_add(1, std::memory_order_relaxed); }

unsigned long long launches() { return g_launches.load(std::memory_order_relaxed); }

int unsupported_call(const char* name) {
  mark_used();
  if (const int failure = injected_failure(name)) {
    return failure;
  }
  return note_unsupported(name);
}

int note_unsupported(const char* name) {
  Notes& n = notes();
  const std::lock_guard lock(n.mutex);
  const auto [place, fresh] = n.place_of.try_emplace(name, n.unsupported.size());
  if (fresh) {
    n.unsupported.push_back({name, 0});
  }
  ++n.unsupported[place->second].calls;
  return library_status(name).unsupported;
}

int launch_call(const char* name) {
  mark_used();
  if (const int failure = injected_failure(name)) {
    return failure;
  }
  count_launch();
  return ok;
}

int workspace_call(const char* name) {
  mark_used();
  if (const int failure = injected_failure(name)) {
    return failure;
  }
  assume("workspaces of cuSPARSE, cuSOLVER and cuFFT are taken to be empty");
  return ok;
}

void assume(const char* what) {
  Notes& n = notes();
  const std::lock_guard lock(n.mutex);
  for (const char* known : n.assumptions) {
    if (std::strcmp(known, what) == 0) {
      return;
    }
  }
  n.assumptions.push_back(what);
}

std::vector<CallCount> unsupported_calls() {
  Notes& n = notes();
  const std::lock_guard lock(n.mutex);
  return n.unsupported;
}

std::vector<const char*> assumptions() {
  Notes& n = notes();
  const std::lock_guard lock(n.mutex);
  return n.assumptions;
}

std::vector<std::string> injected_failures() {
  Notes& n = notes();
  const std::lock_guard lock(n.mutex);
  return n.injected;
}

int injected_failure(const char* entry_point) {
  static Failures* const kFailures = read_failures();
  if (kFailures->wanted.empty()) {
    return 0;
  }
  const auto [first, last] = kFailures->wanted.equal_range(std::string_view(entry_point));
  if (first == last) {
    return 0;
  }
  unsigned long long call = 0;
  {
    const std::lock_guard lock(kFailures->mutex);
    call = ++kFailures->calls[entry_point];
  }
  for (auto wanted = first; wanted != last; ++wanted) {
    const Failure& f = wanted->second;
    if (call == f.call || (f.and_later && call > f.call)) {
      Notes& n = notes();
      const std::lock_guard lock(n.mutex);
      n.injected.push_back(std::string(entry_point) + ":" + std::to_string(call));
      return f.status != 0 ? f.status : library_status(entry_point).failure;
    }
  }
  return 0;
}

}  // namespace nullgpu
