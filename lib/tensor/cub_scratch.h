// Temporary storage of the parallel algorithms that PyTorch takes from CUB.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "tensor/device.h"

namespace qlp {

/// Bytes for a radix sort of `items` pairs of int64 by their lowest `bits` bits (DeviceRadixSort::SortPairs).
std::uint64_t sort_pairs_bytes(std::int64_t items, int bits, const DeviceTraits& traits);
/// Bytes to find where runs of equal values begin among `items` int64 (DeviceSelect::UniqueByKey).
std::uint64_t unique_by_key_bytes(std::int64_t items, const DeviceTraits& traits);
/// Bytes for a running sum of `items` values (DeviceScan).
std::uint64_t scan_bytes(std::int64_t items, DType dtype, const DeviceTraits& traits);

/// Bytes to count which of `items` values are not zero (DeviceReduce::Sum).
std::uint64_t count_bytes(std::int64_t items, const DeviceTraits& traits);
/// Bytes to list where they are (DeviceSelect::Flagged).
std::uint64_t select_bytes(std::int64_t items, const DeviceTraits& traits);

}  // namespace qlp
