// What a sum, mean, norm or maximum over some dimensions takes beside its result.
#pragma once

#include <cstdint>

#include "tensor/context.h"

namespace qlp {

/// Dimensions of a tensor as bits: bit i for dimension i.
using DimensionMask = std::uint32_t;

/// Where blocks of threads share the work on one result they meet in global memory: partial values and semaphores.
struct ReductionScratch {
  std::uint64_t buffer_bytes = 0;  ///< 0: no block shares
  std::uint64_t semaphore_bytes = 0;
  friend bool operator==(const ReductionScratch&, const ReductionScratch&) = default;
};

/// Of the kernel that reduces `reduced` of a tensor of this layout, with partial values of `partial_bytes`
/// (setReduceConfig in ATen/native/cuda/Reduce.cuh, the same from torch 2.4 to 2.14).
ReductionScratch reduction_scratch_bytes(const Shape& shape, const Strides& strides, DimensionMask reduced,
                                         const DeviceTraits& traits, std::uint64_t partial_bytes = 4);

/// Takes and gives back that memory.
void reduction_scratch(Context& ctx, const Tensor& input, DimensionMask reduced, Op op);
/// The same for all dimensions of a dense tensor.
void full_reduction_scratch(Context& ctx, std::int64_t inputs, Op op, std::uint64_t partial_bytes = 4);

}  // namespace qlp
