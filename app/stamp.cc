#include "app/stamp.h"

#include <array>
#include <ctime>
#include <unistd.h>

namespace qlp::app {

Stamp stamp_of(const std::string& job_file) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {.time = time.data(), .host = host.data(), .job_file = job_file};
}

}  // namespace qlp::app
