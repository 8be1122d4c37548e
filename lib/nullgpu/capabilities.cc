#include "nullgpu/capabilities.h"

namespace nullgpu {
namespace {

constexpr int kKiB = 1024;
constexpr std::size_t kMiB = std::size_t{1} << 20U;

// Threads, blocks and shared memory: CUDA C++ Programming Guide 13.0, "Compute Capabilities", technical specifications;
// cuda_occupancy.h (13.0) has the same. Ratios: the guide's arithmetic throughput table. The rest: NVIDIA's whitepapers
// and datasheets of the GPU named, clocks as deviceQuery prints them (boost).
constexpr Capability kCapabilities[] = {
    {70, 2048, 32, 96 * kKiB, 96 * kKiB, 0, 2, false, 80, 6 * kMiB, 1530000, 877000, 4096},            // V100
    {75, 1024, 16, 64 * kKiB, 64 * kKiB, 0, 32, false, 40, 4 * kMiB, 1590000, 5001000, 256},           // T4
    {80, 2048, 32, 164 * kKiB, 163 * kKiB, kKiB, 2, false, 108, 40 * kMiB, 1410000, 1593000, 5120},    // A100 80GB
    {86, 1536, 16, 100 * kKiB, 99 * kKiB, kKiB, 64, false, 82, 6 * kMiB, 1695000, 9751000, 384},       // RTX 3090
    {87, 1536, 16, 164 * kKiB, 163 * kKiB, kKiB, 64, false, 16, 4 * kMiB, 1300000, 1600000, 256},      // Orin
    {89, 1536, 24, 100 * kKiB, 99 * kKiB, kKiB, 64, false, 128, 72 * kMiB, 2520000, 10501000, 384},    // RTX 4090
    {90, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB, 2, true, 132, 50 * kMiB, 1980000, 2619000, 5120},     // H100 SXM
    {100, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB, 2, true, 148, 126 * kMiB, 1965000, 3996000, 8192},   // B200
    {103, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB, 64, true, 148, 126 * kMiB, 1920000, 3996000, 8192},  // B300
    {110, 1536, 24, 228 * kKiB, 227 * kKiB, kKiB, 64, true, 20, 32 * kMiB, 1575000, 4266000, 256},     // Thor
    {120, 1536, 24, 100 * kKiB, 99 * kKiB, kKiB, 64, true, 170, 96 * kMiB, 2407000, 14001000, 512},    // RTX 5090
    {121, 1536, 24, 100 * kKiB, 99 * kKiB, kKiB, 64, true, 48, 24 * kMiB, 2418000, 4266000, 256},      // GB10
};

}  // namespace

const Capability* find_capability(int version) {
  for (const Capability& c : kCapabilities) {
    if (c.version == version) {
      return &c;
    }
  }
  return nullptr;
}

std::string known_capabilities() {
  std::string names;
  for (const Capability& c : kCapabilities) {
    names += (names.empty() ? "" : ", ") + std::to_string(c.version);
  }
  return names;
}

}  // namespace nullgpu
