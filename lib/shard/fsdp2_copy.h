// The tables that FSDP2's fused copies take to the GPU for the time of a kernel (ATen/native/cuda/TensorShape.cu,
// torch 2.8 to 2.14).
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/device.h"

namespace qlp {

/// Bytes of the table of split_with_sizes_copy: `chunks` chunks of the source hold `split_bytes[i]` of each result.
std::uint64_t split_copy_table_bytes(const std::vector<std::int64_t>& split_bytes, std::int64_t chunks,
                                     const DeviceTraits& traits);

/// Bytes of the table of _chunk_cat: each tensor gives `chunk_bytes[i]` to each chunk of the result.
std::uint64_t chunk_cat_table_bytes(const std::vector<std::int64_t>& chunk_bytes);

}  // namespace qlp
