#include "shard/fsdp2_copy.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "tensor/multiprocessor.h"

namespace qlp {
namespace {

constexpr std::int64_t kBlockThreads = 128;                  // BLOCK_SIZE
constexpr std::int64_t kTileBytes = kBlockThreads * 16;      // BYTES_PER_THREAD
constexpr std::uint64_t kEntryBytes = sizeof(std::int64_t);  // pack_vecs

std::int64_t blocks(const std::vector<std::int64_t>& bytes, std::int64_t per_block) {
  std::int64_t sum = 0;
  for (const auto b : bytes) sum += ceil_div(b, per_block);
  return sum;
}

}  // namespace

std::uint64_t split_copy_table_bytes(const std::vector<std::int64_t>& split_bytes, std::int64_t chunks,
                                     const DeviceTraits& traits) {
  const std::int64_t resident =
      traits.sm_count * threads_per_multiprocessor(traits.compute_capability) / kBlockThreads * 2;
  const std::int64_t iterations = ceil_div(blocks(split_bytes, kTileBytes) * chunks, resident);
  const auto root = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(iterations))));
  const std::int64_t per_chunk = ceil_div(iterations, std::min(root, chunks));
  // Addresses of results and sources, sizes, the split of each block, and the sums of blocks with a leading 0.
  const auto splits = static_cast<std::int64_t>(split_bytes.size());
  return static_cast<std::uint64_t>(4 * splits + 1 + blocks(split_bytes, kTileBytes * per_chunk)) * kEntryBytes;
}

std::uint64_t chunk_cat_table_bytes(const std::vector<std::int64_t>& chunk_bytes) {
  // Addresses, actual and padded sizes, block counts; two lists of sums with a leading 0; the tensor of each block.
  const auto tensors = static_cast<std::int64_t>(chunk_bytes.size());
  return static_cast<std::uint64_t>(6 * tensors + 2 + blocks(chunk_bytes, kTileBytes)) * kEntryBytes;
}

}  // namespace qlp
