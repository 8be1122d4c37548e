#include "nullgpu/books.h"

#include <algorithm>
#include <mutex>
#include <sys/mman.h>

#include "nullgpu/device.h"
#include "nullgpu/pools.h"
#include "nullgpu/settings.h"
#include "nullgpu/status.h"

namespace nullgpu {
namespace {

// The driver packs small allocations into granules; from this size on each has its own. Both ends of cudaMalloc's
// behaviour are public (a first cudaMalloc(1) takes 2 MiB, the next thousand take none); the limit itself is not, so it
// is taken to be half a granule. PyTorch never asks for less than a granule.
constexpr std::size_t kSmall = kGranule / 2;
constexpr std::size_t kSmallAlignment = 512;

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

std::recursive_mutex& mutex() {
  static std::recursive_mutex* const kMutex = new std::recursive_mutex;
  return *kMutex;
}

using Guard = std::lock_guard<std::recursive_mutex>;

}  // namespace

std::size_t round_to_granule(std::size_t bytes) { return round_up(std::max<std::size_t>(bytes, 1), kGranule); }

void Usage::add(std::size_t bytes) {
  now += bytes;
  peak = std::max(peak, now);
}

Books& Books::get() {
  static Books* const kBooks = new Books;
  return *kBooks;
}

void Books::lock() const { mutex().lock(); }
void Books::unlock() const { mutex().unlock(); }

DeviceBooks& Books::books(int device) {
  const auto index = static_cast<std::size_t>(std::max(device, 0));
  while (devices_.size() <= index) {
    devices_.push_back(std::make_unique<DeviceBooks>());
  }
  return *devices_[index];
}

DeviceBooks& Books::of(int device) {
  const Guard guard(mutex());
  return books(device);
}

std::size_t Books::capacity(int) const { return settings().bytes; }

std::size_t Books::free_bytes(int device) const {
  const Guard guard(mutex());
  const std::size_t taken = const_cast<Books*>(this)->books(device).used.now + settings().context_bytes;
  return taken >= capacity(device) ? 0 : capacity(device) - taken;
}

bool Books::room(int device, std::size_t bytes) {
  if (bytes <= free_bytes(device)) {
    return true;
  }
  ++books(device).failed;
  return false;
}

int Books::take(int device, std::size_t bytes) {
  const Guard guard(mutex());
  if (!room(device, bytes)) {
    return out_of_memory;
  }
  books(device).used.add(bytes);
  ++books(device).mallocs;
  return ok;
}

void Books::give(int device, std::size_t bytes) {
  const Guard guard(mutex());
  books(device).used.take(bytes);
  ++books(device).frees;
}

int Books::place(std::uintptr_t& address, std::size_t bytes, Kind kind, int device) {
  const bool host = kind == Kind::managed || kind == Kind::pinned;
  AddressSpace& space = host ? host_space_ : device_space_;
  if (kind == Kind::device && bytes < kSmall) {
    DeviceBooks& b = books(device);
    const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), kSmallAlignment);
    address = b.small.take(rounded, 0);
    if (address != 0) {
      return ok;
    }
    if (!room(device, kGranule)) {
      return out_of_memory;
    }
    const std::uintptr_t granule = space.allocate(kGranule);
    if (granule == 0) {
      return out_of_memory;
    }
    b.used.add(kGranule);
    b.small.insert({granule, granule + kGranule});
    address = b.small.take(rounded, 0);
    return ok;
  }
  const std::size_t rounded = round_to_granule(bytes);
  if (rounded < bytes || (kind == Kind::device && !room(device, rounded))) {
    return out_of_memory;
  }
  address = space.allocate(rounded);
  if (address == 0) {
    return out_of_memory;
  }
  if (kind == Kind::device) {
    books(device).used.add(rounded);
  } else if (host) {
    (kind == Kind::pinned ? pinned_ : managed_).add(bytes);
  }
  return ok;
}

int Books::allocate(void** out, std::size_t bytes, Kind kind, int device, unsigned flags, Pool* pool) {
  if (out == nullptr) {
    return invalid_value;
  }
  if (bytes == 0) {
    *out = nullptr;  // as cudaMalloc(0) does
    return ok;
  }
  const Guard guard(mutex());
  if (pool != nullptr) {
    if (const int status = grow_pool(*pool, bytes)) {
      return status;
    }
  }
  std::uintptr_t address = 0;
  if (const int status = place(address, bytes, kind, device)) {
    return status;
  }
  if (kind == Kind::device) {
    ++books(device).mallocs;
  }
  blocks_.emplace(address, Block{address, bytes, kind, device, flags, pool, next_id_++});
  *out = reinterpret_cast<void*>(address);
  return ok;
}

void Books::drop(std::map<std::uintptr_t, Block>::iterator at) {
  const Block block = at->second;
  blocks_.erase(at);
  if (block.kind == Kind::registered) {
    pinned_.take(block.bytes);
    return;
  }
  known_.forget(block.address, block.address + block.bytes);
  if (block.kind == Kind::device) {
    DeviceBooks& b = books(block.device);
    ++b.frees;
    if (block.bytes < kSmall) {
      b.small.insert({block.address, block.address + round_up(block.bytes, kSmallAlignment)});
      const std::uintptr_t granule = block.address & ~(kGranule - 1);
      if (b.small.remove({granule, granule + kGranule})) {
        b.used.take(kGranule);
        device_space_.release(granule, kGranule);
      }
      return;
    }
    b.used.take(round_to_granule(block.bytes));
  }
  const bool host = block.kind == Kind::managed || block.kind == Kind::pinned;
  if (host) {
    (block.kind == Kind::pinned ? pinned_ : managed_).take(block.bytes);
    drop_pages(block.address, round_to_granule(block.bytes));  // the program wrote there without telling
  }
  (host ? host_space_ : device_space_).release(block.address, round_to_granule(block.bytes));
}

int Books::release(void* p, Kind kind, Kind other) {
  if (p == nullptr) {
    return ok;
  }
  const Guard guard(mutex());
  const auto at = blocks_.find(reinterpret_cast<std::uintptr_t>(p));
  if (at == blocks_.end() || (at->second.kind != kind && at->second.kind != other)) {
    return kind == Kind::registered ? host_memory_not_registered : invalid_value;
  }
  if (at->second.pool != nullptr) {
    shrink_pool(*at->second.pool, at->second.bytes);
  }
  drop(at);
  return ok;
}

int Books::add_registered(void* p, std::size_t bytes, unsigned flags, int device) {
  if (p == nullptr || bytes == 0) {
    return invalid_value;
  }
  const Guard guard(mutex());
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  auto after = blocks_.upper_bound(begin);
  if ((after != blocks_.end() && after->first < begin + bytes) ||
      (after != blocks_.begin() && std::prev(after)->first + std::prev(after)->second.bytes > begin)) {
    return host_memory_already_registered;
  }
  blocks_.emplace(begin, Block{begin, bytes, Kind::registered, device, flags, nullptr, next_id_++});
  pinned_.add(bytes);
  return ok;
}

bool Books::find(const void* p, Block& block) const {
  const Guard guard(mutex());
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) {
    return false;
  }
  --after;
  if (address >= after->first + after->second.bytes) {
    return false;
  }
  block = after->second;
  return true;
}

bool Books::whole(const void* p, std::size_t n, bool& on_device) const {
  const Guard guard(mutex());
  Block block{};
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (!find(p, block)) {
    on_device = device_space_.contains(address);
    return !on_device;  // freed, or never handed out
  }
  on_device = block.on_device();
  return !on_device || address + n <= block.address + block.bytes;
}

void Books::clear(int device) {
  const Guard guard(mutex());
  for (auto at = blocks_.begin(); at != blocks_.end();) {
    const auto next = std::next(at);
    if (at->second.device == device && at->second.kind == Kind::device) {
      drop(at);
    }
    at = next;
  }
}

}  // namespace nullgpu
