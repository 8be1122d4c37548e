// The books: every block of memory that the program had from CUDA, what each device has given, and what may not be had.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "nullgpu/address_space.h"
#include "nullgpu/free_ranges.h"
#include "nullgpu/known_bytes.h"

namespace nullgpu {

struct Pool;

enum class Kind {
  device,      // cudaMalloc, arrays
  pooled,      // cudaMallocAsync
  managed,     // cudaMallocManaged
  pinned,      // cudaHostAlloc
  registered,  // cudaHostRegister: the program's own memory
  range,       // cuMemAddressReserve: memory by cuMemMap
  symbol,      // a variable of a module
  remote,      // another process's, by an IPC handle
};

struct Block {
  std::uintptr_t address;
  std::size_t bytes;  // as asked for
  Kind kind;
  int device;
  unsigned flags;
  Pool* pool;        // of pooled memory
  std::uint64_t id;  // CU_POINTER_ATTRIBUTE_BUFFER_ID: never used twice
  bool on_device() const { return kind != Kind::managed && kind != Kind::pinned && kind != Kind::registered; }
};

struct Usage {
  std::size_t now = 0;
  std::size_t peak = 0;
  void add(std::size_t bytes);
  void take(std::size_t bytes) { now -= bytes; }
};

struct DeviceBooks {
  Usage used;
  std::size_t mallocs = 0;
  std::size_t frees = 0;
  std::size_t failed = 0;
  FreeRanges small;  // what is free in the granules that hold allocations smaller than kSmall
};

/// One per process; every call locks.
class Books {
 public:
  static Books& get();

  /// Status. *out is aligned to 2 MiB, small blocks (which share granules) to 512 bytes.
  int allocate(void** out, std::size_t bytes, Kind kind, int device, unsigned flags, Pool* pool = nullptr);
  /// Status: invalid_value where no block of that kind starts there. Frees of null are fine.
  int release(void* p, Kind kind, Kind other);
  int release(void* p, Kind kind) { return release(p, kind, kind); }
  /// Host memory that is the program's own.
  int add_registered(void* p, std::size_t bytes, unsigned flags, int device);
  /// The block that holds this address; false: none.
  bool find(const void* p, Block& block) const;

  /// Takes device memory with no address (cuMemCreate), or says out_of_memory.
  int take(int device, std::size_t bytes);
  void give(int device, std::size_t bytes);

  std::size_t capacity(int device) const;
  std::size_t free_bytes(int device) const;
  DeviceBooks& of(int device);
  const Usage& pinned() const { return pinned_; }
  const Usage& managed() const { return managed_; }
  /// Frees all that a device holds (cudaDeviceReset).
  void clear(int device);

  /// True where [p, p + n) lies in one block on a device, or touches none.
  bool whole(const void* p, std::size_t n, bool& on_device) const;
  KnownBytes& known() { return known_; }

  /// For fork(), and for what looks at several things at once. Recursive.
  void lock() const;
  void unlock() const;

 private:
  int place(std::uintptr_t& address, std::size_t bytes, Kind kind, int device);
  void drop(std::map<std::uintptr_t, Block>::iterator at);
  DeviceBooks& books(int device);
  bool room(int device, std::size_t bytes);

  std::map<std::uintptr_t, Block> blocks_;
  std::vector<std::unique_ptr<DeviceBooks>> devices_;
  AddressSpace device_space_;
  AddressSpace host_space_;
  KnownBytes known_;
  Usage pinned_;
  Usage managed_;
  std::uint64_t next_id_ = 1;
};

/// Device bytes that a block of this size takes when nothing is shared.
std::size_t round_to_granule(std::size_t bytes);

}  // namespace nullgpu
