// The options of PyTorch's CUDA caching allocator, and the text in which people set them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace qlp {

/// Which of several free blocks of the same best size is taken.
enum class EqualBlocks : std::uint8_t {
  lowest_address,
  oldest_segment,  ///< then the lowest address: torch from 2.13 on (pytorch PR 183591; seen in 2.14.1, not in 2.8.0)
};

/// Sizes in bytes. The defaults are those of torch 2.8 (c10/cuda/CUDAAllocatorConfig.h).
struct AllocatorConfig {
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  /// Blocks of this size or more are neither split nor given to smaller requests.
  std::uint64_t max_split_size = kUnlimited;
  /// Most that an unsplit block may exceed the request that takes it, from max_split_size on.
  std::uint64_t max_non_split_rounding = std::uint64_t{20} << 20;
  /// Steps between powers of two to which requests are rounded, by size: up to 2 MiB, 4 MiB, ... from 32 GiB on; 0 is
  /// off.
  std::array<std::uint32_t, 16> roundup_power2_divisions{};
  /// Part of the allowed memory from which old cached blocks are freed before more is taken; 0 is off.
  double garbage_collection_threshold = 0.0;
  /// One growing segment per stream and pool.
  bool expandable_segments = false;
  /// Segment for requests between 1 MiB and half of it, and the page of expandable segments (newer torch only).
  std::uint64_t large_segment_size = std::uint64_t{20} << 20;
  /// Part of the device that the process may take, where it is set (torch.cuda.set_per_process_memory_fraction).
  std::optional<double> memory_fraction;
  /// Not an option, but a matter of the torch release.
  EqualBlocks equal_blocks = EqualBlocks::lowest_address;

  /// The entry of roundup_power2_divisions for a request of this size (> 0).
  std::uint32_t power2_divisions_at(std::uint64_t bytes) const {
    const auto exponent = static_cast<std::size_t>(std::bit_width(bytes)) - 1;
    return roundup_power2_divisions[std::clamp<std::size_t>(exponent, 20, 35) - 20];
  }

  friend bool operator==(const AllocatorConfig&, const AllocatorConfig&) = default;
};

/// What ">" means in roundup_power2_divisions:[256:2,512:4,>:8].
enum class LargerSizes : std::uint8_t {
  from_last,   ///< the last size of the list and all above it: torch up to 2.8
  after_last,  ///< the sizes above the last of the list: torch from 2.9 on (c10/core/AllocatorConfig.cpp)
};

/// Reads the text of PYTORCH_CUDA_ALLOC_CONF ("expandable_segments:True,max_split_size_mb:64"). All errors at once,
/// each with its column in the text. Options that have no part in a device's memory are read over.
Result<AllocatorConfig> parse_allocator_config(std::string_view text,
                                               LargerSizes larger_sizes = LargerSizes::after_last);

}  // namespace qlp
