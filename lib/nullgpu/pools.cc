#include "nullgpu/pools.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>

#include "nullgpu/status.h"

namespace nullgpu {
namespace {

// A pool takes memory from its device in pieces of 32 MiB (reserved memory as programs see it grows by 33,554,432
// bytes) and cuts them in units of 512 bytes. Fragmentation inside a pool is not modelled: a lower bound of a real one.
constexpr std::size_t kPiece = std::size_t{32} << 20U;
constexpr std::size_t kUnit = 512;

struct Pools {
  std::deque<Pool> all;  // pools never move, and outlive their destruction
  std::deque<Pool*> defaults;
  std::deque<Pool*> current;
};

Pools& pools() {
  static Pools* const kPools = new Pools;
  return *kPools;
}

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

void make_defaults(int device) {
  Pools& p = pools();
  while (static_cast<int>(p.defaults.size()) <= device) {
    Pool& made = p.all.emplace_back();
    made.device = static_cast<int>(p.defaults.size());
    p.defaults.push_back(&made);
    p.current.push_back(&made);
  }
}

}  // namespace

Pool* default_pool(int device) {
  const std::lock_guard guard(Books::get());
  make_defaults(device);
  return pools().defaults[static_cast<std::size_t>(device)];
}

Pool* current_pool(int device) {
  const std::lock_guard guard(Books::get());
  make_defaults(device);
  return pools().current[static_cast<std::size_t>(device)];
}

int set_current_pool(int device, Pool* pool) {
  const std::lock_guard guard(Books::get());
  make_defaults(device);
  if (pool == nullptr || pool->device != device) {
    return invalid_value;
  }
  pools().current[static_cast<std::size_t>(device)] = pool;
  return ok;
}

Pool* new_pool(int device) {
  const std::lock_guard guard(Books::get());
  Pool& made = pools().all.emplace_back();
  made.device = device;
  return &made;
}

void delete_pool(Pool* pool) {
  const std::lock_guard guard(Books::get());
  pool->release_threshold = 0;
  trim_pool(*pool, 0);
  for (std::size_t i = 0; i < pools().current.size(); ++i) {
    if (pools().current[i] == pool) {
      pools().current[i] = pools().defaults[i];
    }
  }
}

int grow_pool(Pool& pool, std::size_t bytes) {
  const std::size_t used = pool.used + round_up(bytes, kUnit);
  const std::size_t reserved = std::max(pool.reserved, round_up(used, kPiece));
  if (reserved > pool.reserved) {
    if (Books::get().take(pool.device, reserved - pool.reserved) != ok) {
      // What the other pools of the device hold unused is given back before that fails.
      trim_pools();
      if (Books::get().take(pool.device, reserved - pool.reserved) != ok) {
        return out_of_memory;
      }
    }
    pool.reserved = reserved;
    pool.reserved_peak = std::max(pool.reserved_peak, reserved);
  }
  pool.used = used;
  pool.used_peak = std::max(pool.used_peak, used);
  return ok;
}

void shrink_pool(Pool& pool, std::size_t bytes) { pool.used -= round_up(bytes, kUnit); }

void trim_pool(Pool& pool, std::size_t keep) {
  const std::lock_guard guard(Books::get());
  const std::size_t reserved = std::max(round_up(pool.used, kPiece), std::min(pool.reserved, round_up(keep, kPiece)));
  if (reserved < pool.reserved) {
    Books::get().give(pool.device, pool.reserved - reserved);
    pool.reserved = reserved;
  }
}

void trim_pools() {
  const std::lock_guard guard(Books::get());
  for (Pool& pool : pools().all) {
    if (pool.reserved > pool.release_threshold) {
      trim_pool(pool, std::max(pool.used, pool.release_threshold));
    }
  }
}

// cudaMemPoolAttr (driver_types.h): 1 to 3 reuse policies (int), 4 release threshold, 5 and 6 reserved now and at most,
// 7 and 8 used now and at most (cuuint64_t).
int pool_attribute(const Pool& pool, int attribute, void* value) {
  const std::lock_guard guard(Books::get());
  const std::size_t numbers[] = {pool.release_threshold, pool.reserved, pool.reserved_peak, pool.used, pool.used_peak};
  if (attribute >= 1 && attribute <= 3) {
    const int flag = static_cast<int>(pool.reuse[attribute - 1]);
    std::memcpy(value, &flag, sizeof flag);
  } else if (attribute >= 4 && attribute <= 8) {
    std::memcpy(value, &numbers[attribute - 4], sizeof(std::size_t));
  } else {
    return invalid_value;
  }
  return ok;
}

int set_pool_attribute(Pool& pool, int attribute, const void* value) {
  const std::lock_guard guard(Books::get());
  if (attribute >= 1 && attribute <= 3) {
    int flag = 0;
    std::memcpy(&flag, value, sizeof flag);
    pool.reuse[attribute - 1] = static_cast<unsigned long long>(flag != 0);
    return ok;
  }
  std::size_t number = 0;
  std::memcpy(&number, value, sizeof number);
  if (attribute == 4) {
    pool.release_threshold = number;
  } else if (attribute == 6 && number == 0) {  // the peaks can be reset, to now
    pool.reserved_peak = pool.reserved;
  } else if (attribute == 8 && number == 0) {
    pool.used_peak = pool.used;
  } else {
    return invalid_value;
  }
  return ok;
}

}  // namespace nullgpu
