// What a reduction of a whole tensor to one value takes beside its result.
#pragma once

#include <cstdint>

#include "tensor/context.h"

namespace qlp {

/// Blocks of threads that share a sum, mean or maximum over `inputs` contiguous values of 32 bits; 1 if one does it
/// alone (setReduceConfig in ATen/native/cuda/Reduce.cuh, torch 2.4 to 2.14).
std::int64_t full_reduction_blocks(std::int64_t inputs, const DeviceTraits& traits);

/// Blocks that share the work meet in global memory: a partial value of each and a semaphore, gone when it is done.
void full_reduction_scratch(Context& ctx, std::int64_t inputs, Op op);

}  // namespace qlp
