// Stream-ordered memory pools (cudaMallocAsync): how much each holds from its device, and gives back when.
#pragma once

#include <cstddef>

#include "nullgpu/books.h"

namespace nullgpu {

struct Pool {
  int device;
  std::size_t used = 0;
  std::size_t used_peak = 0;
  std::size_t reserved = 0;
  std::size_t reserved_peak = 0;
  std::size_t release_threshold = 0;
  unsigned long long reuse[3] = {1, 1, 1};  // cudaMemPoolAttr 1 to 3, all on by default
};

/// The device's own, and the one that cudaMallocAsync takes from now.
Pool* default_pool(int device);
Pool* current_pool(int device);
int set_current_pool(int device, Pool* pool);
Pool* new_pool(int device);
/// Its memory lives on until it is freed.
void delete_pool(Pool* pool);

/// With the books locked. Status.
int grow_pool(Pool& pool, std::size_t bytes);
void shrink_pool(Pool& pool, std::size_t bytes);

/// Gives back what is above the threshold: of one pool to `keep` bytes, or of all at a synchronisation.
void trim_pool(Pool& pool, std::size_t keep);
void trim_pools();

/// cudaMemPoolGetAttribute and its opposite; status.
int pool_attribute(const Pool& pool, int attribute, void* value);
int set_pool_attribute(Pool& pool, int attribute, const void* value);

}  // namespace nullgpu
