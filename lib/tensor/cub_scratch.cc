#include "tensor/cub_scratch.h"

#include "base/rounding.h"

namespace qlp {
namespace {

// Every part of an allocation starts at a multiple of 256 bytes, and the block may start anywhere (AliasTemporaries).
constexpr std::uint64_t kAlignment = 256;
constexpr std::uint64_t kSlack = kAlignment - 1;

constexpr std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kSlack) / kAlignment * kAlignment; }
constexpr std::uint64_t parts(std::int64_t n, std::int64_t unit) {
  return static_cast<std::uint64_t>(ceil_div(n, unit));
}

constexpr std::uint32_t kCub3 = 130;  ///< CUDA toolkit with CUB 3

constexpr int kDigitBits = 8;
constexpr std::uint64_t kDigits = 1U << kDigitBits;

/// Pairs that a block sorts at once (DeviceRadixSortPolicy, 8-byte keys and values; device/dispatch/tuning).
std::int64_t sort_tile(const DeviceTraits& traits) {
  if (traits.compute_capability < 80) return 2816;
  return traits.compute_capability >= 90 && traits.cuda_toolkit >= 128 ? 4608 : 3840;
}

/// Pairs that one block sorts by itself, in shared memory alone (RadixSortSingleTilePolicy: 256 threads with 9 each).
constexpr std::int64_t kSingleTile = 2304;

constexpr std::uint64_t kPaddingTiles = 32;  // ScanTileState: one warp

/// Room for the state of every tile, beside `extras` small parts.
std::uint64_t tile_states(std::int64_t items, std::int64_t tile, std::uint64_t state_bytes, std::uint64_t extras) {
  return aligned((parts(items, tile) + kPaddingTiles) * state_bytes) + extras * kAlignment + kSlack;
}

}  // namespace

std::uint64_t sort_pairs_bytes(std::int64_t items, int bits, const DeviceTraits& traits) {
  if (items <= kSingleTile) return 1;
  const std::uint64_t passes = parts(bits, kDigitBits);
  const std::uint64_t bins = passes * kDigits * sizeof(std::int64_t);
  const std::uint64_t lookback = parts(items, sort_tile(traits)) * kDigits * sizeof(std::int32_t);
  const std::uint64_t other_buffer = aligned(static_cast<std::uint64_t>(items) * sizeof(std::int64_t));
  const std::uint64_t counters = kAlignment;
  return bins + lookback + 2 * other_buffer + counters + kSlack;
}

std::uint64_t unique_by_key_bytes(std::int64_t items, const DeviceTraits& traits) {
  if (traits.cuda_toolkit < 128) return tile_states(items, 320, 8, 0);
  if (traits.cuda_toolkit < kCub3) return tile_states(items, 896, 8, 1);
  return tile_states(items, 640, 8, 2);
}

std::uint64_t scan_bytes(std::int64_t items, DType dtype, const DeviceTraits& traits) {
  const std::uint64_t state = std::uint64_t{2} * size_of(dtype);  // the value beside its status
  return tile_states(items, 896, state, traits.cuda_toolkit < kCub3 ? 0 : 1);
}

// agent_reduce.cuh, dispatch_reduce.cuh: 256 threads with 16 items each; a grid of at most 5 times the blocks that are
// resident at once, 8 on a multiprocessor.
std::uint64_t count_bytes(std::int64_t items, const DeviceTraits& traits) {
  constexpr std::int64_t kTile = 4096, kBlocks = 40;
  if (items <= kTile) return 1;
  return aligned(static_cast<std::uint64_t>(traits.sm_count * kBlocks) * sizeof(std::int32_t)) + kSlack;
}

// Tiles as seen with the toolkits of torch 2.4, 2.8 and 2.14 on compute capability 7.5, 8.0, 9.0 and 10.0.
std::uint64_t select_bytes(std::int64_t items, const DeviceTraits& traits) {
  const std::uint64_t extras = traits.cuda_toolkit < kCub3 ? 0 : 1;
  const auto tile = [&]() -> std::int64_t {
    if (traits.cuda_toolkit < 128 || traits.compute_capability < 80) return 640;
    if (traits.compute_capability < 90) return 2304;
    return traits.compute_capability >= 100 && extras ? 3520 : 4224;
  };
  return tile_states(items, tile(), 8, extras);
}

}  // namespace qlp
