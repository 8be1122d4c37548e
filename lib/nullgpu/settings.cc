#include "nullgpu/settings.h"

#include <cerrno>
#include <cstdlib>
#include <unistd.h>

#include <climits>

#include "nullgpu/capabilities.h"

namespace nullgpu {
namespace {

[[noreturn]] void refuse(const char* variable, const char* value, const std::string& expected) {
  const std::string message =
      "nullgpu: " + std::string(variable) + "=" + value + " is not understood: expected " + expected + "\n";
  (void)!write(STDERR_FILENO, message.data(), message.size());
  _exit(2);
}

std::size_t number(const char* variable, std::size_t otherwise, std::size_t least, std::size_t most) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') {
    return otherwise;
  }
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (errno != 0 || *end != '\0' || *text < '0' || *text > '9' || value < least || value > most) {
    refuse(variable, text, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

int small_number(const char* variable, int otherwise, int least, int most) {
  return static_cast<int>(number(variable, static_cast<std::size_t>(otherwise), static_cast<std::size_t>(least),
                                 static_cast<std::size_t>(most)));
}

std::string text_of(const char* variable, const char* otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : text;
}

Settings read() {
  constexpr std::size_t kAny = SIZE_MAX / 2;
  Settings s{};
  s.devices = small_number("NULLGPU_DEVICES", 8, 0, 1024);
  s.name = text_of("NULLGPU_NAME", "NVIDIA A100-SXM4-80GB");
  s.compute_capability = small_number("NULLGPU_SM", 80, 0, INT_MAX);
  if (find_capability(s.compute_capability) == nullptr) {
    refuse("NULLGPU_SM", std::getenv("NULLGPU_SM"), "a compute capability times ten: " + known_capabilities());
  }
  const Capability& c = *find_capability(s.compute_capability);
  s.multiprocessors = small_number("NULLGPU_SMS", c.multiprocessors, 1, 4096);
  s.l2_bytes = number("NULLGPU_L2_BYTES", c.l2_bytes, 0, INT_MAX);
  s.clock_khz = small_number("NULLGPU_CLOCK_KHZ", c.clock_khz, 1, INT_MAX);
  s.memory_khz = small_number("NULLGPU_MEMORY_KHZ", c.memory_khz, 1, INT_MAX);
  s.bus_bits = small_number("NULLGPU_BUS_BITS", c.bus_bits, 1, INT_MAX);
  s.bytes = number("NULLGPU_BYTES", std::size_t{81151} << 20U, 0, kAny);
  s.nvml_bytes = number("NULLGPU_NVML_BYTES",
                        s.bytes > (std::size_t{81920} << 20U) ? s.bytes : std::size_t{81920} << 20U, 0, kAny);
  s.context_bytes = number("NULLGPU_CONTEXT_BYTES", 0, 0, kAny);
  s.driver_version = small_number("NULLGPU_DRIVER", 13020, 11000, 99990);
  s.lazy_events = number("NULLGPU_LAZY_EVENTS", 0, 0, 1) == 1;
  s.copy_max = number("NULLGPU_COPY_MAX", 65536, 0, kAny);
  s.fail = text_of("NULLGPU_FAIL", "");
  s.report = text_of("NULLGPU_REPORT", "");
  s.nccl_version = small_number("NULLGPU_NCCL_VERSION", 0, 0, INT_MAX);
  const std::string ranks = text_of("NULLGPU_RANKS", "alone");
  if (ranks != "alone" && ranks != "real") {
    refuse("NULLGPU_RANKS", ranks.c_str(), "alone or real");
  }
  s.real_ranks = ranks == "real";
  s.listens = number("NULLGPU_LISTENS", 0, 0, 1) == 1;
  s.has_visible_devices = std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
  s.visible_devices = text_of("CUDA_VISIBLE_DEVICES", "");
  return s;
}

}  // namespace

const Settings& settings() {
  static const Settings* const kSettings = new Settings(read());
  return *kSettings;
}

}  // namespace nullgpu
