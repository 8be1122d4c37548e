#include "memory/host_segments.h"

#include <new>
#include <sys/mman.h>

namespace qlp {
namespace {

/// Room for a dozen expandable segments, each of which reserves an eighth more than the device has.
constexpr std::uint64_t kRange = std::uint64_t{8} << 40;
constexpr std::uint64_t kMostMemory = std::uint64_t{256} << 30;

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): that it is
}

}  // namespace

HostSegments::Range::Range() {
  void* const begin = mmap(nullptr, kRange, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  begin_ = reinterpret_cast<std::uint64_t>(begin);
}
HostSegments::Range::~Range() { munmap(pointer(begin_), kRange); }

std::uint64_t HostSegments::Range::end() const { return begin_ + kRange; }

void HostSegments::Range::drop(std::uint64_t address, std::uint64_t bytes) {
  constexpr std::uint64_t kPage = 4096;
  madvise(pointer(address), bytes / kPage * kPage, MADV_DONTNEED);
}

HostSegments::HostSegments(std::uint64_t limit)
    : counter_(limit < kMostMemory ? limit : kMostMemory, range_.begin(), range_.end()) {}
HostSegments::~HostSegments() = default;

void HostSegments::release(std::uint64_t address, std::uint64_t bytes) {
  counter_.release(address, bytes);
  Range::drop(address, bytes);
}

void HostSegments::unmap(std::uint64_t address, std::uint64_t bytes) {
  counter_.unmap(address, bytes);
  Range::drop(address, bytes);
}

}  // namespace qlp
