// The control interface of nullgpu.h.
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <unistd.h>

#include "nullgpu/books.h"
#include "nullgpu/calls.h"
#include "nullgpu/communicator_log.h"
#include "nullgpu/copies.h"
#include "nullgpu/device.h"
#include "nullgpu/entry.h"
#include "nullgpu/nullgpu.h"
#include "nullgpu/settings.h"

namespace nullgpu {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

std::string field(const char* name, std::size_t value) { return quoted(name) + ": " + std::to_string(value); }

std::string usage(const char* name, const Usage& u) {
  return field((std::string(name) + "_bytes").c_str(), u.now) + ", " +
         field((std::string(name) + "_peak_bytes").c_str(), u.peak);
}

template <class Items, class Text>
std::string list(const Items& items, Text&& text) {
  std::string out = "[";
  for (const auto& item : items) {
    out += (out.size() > 1 ? ", " : "") + text(item);
  }
  return out + "]";
}

std::string report() {
  const std::lock_guard guard(Books::get());
  const Settings& s = settings();
  std::string devices;
  for (int i = 0; i < device_count(); ++i) {
    if (!device_in_use(i)) {
      continue;
    }
    const DeviceBooks& b = Books::get().of(i);
    devices += (devices.empty() ? "" : ",\n    ") + ("{" + field("device", static_cast<std::size_t>(i))) + ", " +
               field("capacity_bytes", s.bytes) + ", " + field("context_bytes", s.context_bytes) + ", " +
               usage("used", b.used) + ", " + field("mallocs", b.mallocs) + ", " + field("frees", b.frees) + ", " +
               field("failed_mallocs", b.failed) + "}";
  }
  return "{\n  \"version\": \"1.0\",\n  " + field("process", static_cast<std::size_t>(getpid())) +
         ",\n  \"gpu\": " + quoted(s.name) + ",\n  " +
         field("compute_capability", static_cast<std::size_t>(s.compute_capability)) +
         ",\n  \"lazy_events\": " + (s.lazy_events ? "true" : "false") + ",\n  \"devices\": [\n    " + devices +
         "\n  ],\n  " + usage("pinned", Books::get().pinned()) + ",\n  " + usage("managed", Books::get().managed()) +
         ",\n  " + field("launches", static_cast<std::size_t>(launches())) + ",\n  \"communicators\": " +
         list(communicators_made(),
              [](const CommunicatorEntry& c) {
                return "{" + field("size", static_cast<std::size_t>(c.size)) + ", " +
                       field("rank", static_cast<std::size_t>(c.rank)) + ", " +
                       field("collectives", static_cast<std::size_t>(c.collectives)) + "}";
              }) +
         ",\n  \"unimplemented\": " +
         list(unsupported_calls(),
              [](const CallCount& c) {
                return "{\"name\": " + quoted(c.name) + ", " + field("calls", static_cast<std::size_t>(c.calls)) + "}";
              }) +
         ",\n  \"assumptions\": " + list(assumptions(), [](const char* text) { return quoted(text); }) +
         ",\n  \"injected_failures\": " + list(injected_failures(), quoted) + "\n}\n";
}

int write_file(const std::string& path, const std::string& text) {
  const std::string part = path + "." + std::to_string(getpid()) + ".part";
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    return errno;
  }
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(file, text.data() + at, text.size() - at);
    if (n < 0) {
      const int error = errno;
      close(file);
      unlink(part.c_str());
      return error;
    }
    at += static_cast<std::size_t>(n);
  }
  if (close(file) != 0 || rename(part.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(part.c_str());
    return error;
  }
  return 0;
}

}  // namespace
}  // namespace nullgpu

using nullgpu::Books;
using nullgpu::current_device;

QLP_EXPORT size_t nullgpu_used(void) { return Books::get().of(current_device()).used.now; }
QLP_EXPORT size_t nullgpu_peak(void) { return Books::get().of(current_device()).used.peak; }
QLP_EXPORT size_t nullgpu_device_used(int device) { return Books::get().of(device).used.now; }
QLP_EXPORT size_t nullgpu_device_peak(int device) { return Books::get().of(device).used.peak; }
QLP_EXPORT size_t nullgpu_capacity(void) { return nullgpu::settings().bytes; }
QLP_EXPORT size_t nullgpu_context_bytes(void) { return nullgpu::settings().context_bytes; }
QLP_EXPORT size_t nullgpu_mallocs(void) { return Books::get().of(current_device()).mallocs; }
QLP_EXPORT size_t nullgpu_failed_mallocs(void) { return Books::get().of(current_device()).failed; }
QLP_EXPORT size_t nullgpu_pinned(void) { return Books::get().pinned().now; }
QLP_EXPORT size_t nullgpu_pinned_peak(void) { return Books::get().pinned().peak; }
QLP_EXPORT size_t nullgpu_managed(void) { return Books::get().managed().now; }
QLP_EXPORT size_t nullgpu_managed_peak(void) { return Books::get().managed().peak; }

QLP_EXPORT size_t nullgpu_written_by_host(const void* address, size_t n) {
  const std::lock_guard guard(Books::get());
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return Books::get().known().count(begin, begin + n);
}

QLP_EXPORT void nullgpu_forget(const void* address, size_t n) {
  const std::lock_guard guard(Books::get());
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  Books::get().known().forget(begin, begin + n);
}

QLP_EXPORT void nullgpu_put(void* address, const void* host, size_t n) { nullgpu::put(address, host, n); }
QLP_EXPORT void nullgpu_get(void* host, const void* address, size_t n) { nullgpu::copy(host, address, n); }

QLP_EXPORT unsigned long long nullgpu_launches(void) { return nullgpu::launches(); }

QLP_EXPORT size_t nullgpu_unimplemented(void) { return nullgpu::unsupported_calls().size(); }

QLP_EXPORT const char* nullgpu_unimplemented_name(size_t index) {
  const auto calls = nullgpu::unsupported_calls();
  return index < calls.size() ? calls[index].name : nullptr;
}

QLP_EXPORT unsigned long long nullgpu_unimplemented_calls(size_t index) {
  const auto calls = nullgpu::unsupported_calls();
  return index < calls.size() ? calls[index].calls : 0;
}

QLP_EXPORT size_t nullgpu_assumptions(void) { return nullgpu::assumptions().size(); }

QLP_EXPORT const char* nullgpu_assumption(size_t index) {
  const auto texts = nullgpu::assumptions();
  return index < texts.size() ? texts[index] : nullptr;
}

QLP_EXPORT int nullgpu_write_report(const char* path) { return nullgpu::write_file(path, nullgpu::report()); }

QLP_EXPORT int nullgpu_version(void) { return 100; }
