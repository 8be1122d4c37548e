#include "nullgpu/address_space.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace nullgpu {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kChunk = std::size_t{1} << 40U;

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

}  // namespace

std::uintptr_t AddressSpace::allocate(std::size_t bytes) {
  const std::uintptr_t address = free_.take(bytes, kGranule);
  if (address != 0 || !grow(bytes + kGranule)) {
    return address;
  }
  return free_.take(bytes, kGranule);
}

void AddressSpace::release(std::uintptr_t address, std::size_t bytes) { free_.insert({address, address + bytes}); }

bool AddressSpace::contains(std::uintptr_t address) const {
  const auto after = chunks_.upper_bound(address);
  return after != chunks_.begin() && address < std::prev(after)->second;
}

bool AddressSpace::grow(std::size_t bytes) {
  for (std::size_t size = std::max(kChunk, round_up(bytes + 2 * kGranule, kGranule));; size /= 2) {
    if (size < bytes + 2 * kGranule) {
      return false;  // halved below what is needed: the process has a limit on its address space
    }
    void* const p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
      continue;
    }
    // A copy of four bytes shall not take a huge page, nor a core dump hold a terabyte.
    madvise(p, size, MADV_NOHUGEPAGE);
    madvise(p, size, MADV_DONTDUMP);
    const auto begin = round_up(reinterpret_cast<std::uintptr_t>(p), kGranule);
    const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(p) + size) & ~(kGranule - 1);
    chunks_.emplace(begin, end);
    free_.insert({begin, end});
    return true;
  }
}

void drop_pages(std::uintptr_t address, std::size_t bytes) {
  const std::uintptr_t begin = round_up(address, kPage);
  const std::uintptr_t end = (address + bytes) & ~(kPage - 1);
  if (begin >= end) {
    std::memset(reinterpret_cast<void*>(address), 0, bytes);
    return;
  }
  std::memset(reinterpret_cast<void*>(address), 0, begin - address);
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  std::memset(reinterpret_cast<void*>(end), 0, address + bytes - end);
}

}  // namespace nullgpu
