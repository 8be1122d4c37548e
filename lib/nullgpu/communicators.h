// NCCL's communicators: one rank of any number, played by this process alone. All other ranks are taken to hold what
// this one holds, and to do what it does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nullgpu {

/// NCCL's types (nccl.h): 0 int8 ... 11 float8e5m2; bytes of one element, 0: no such type.
std::size_t nccl_element_bytes(int type);

/// ncclRedOp_t: 0 sum, 1 product, 2 maximum, 3 minimum, 4 average; others are the program's own.
inline constexpr int kSum = 0;
inline constexpr int kProduct = 1;
inline constexpr int kMaximum = 2;
inline constexpr int kMinimum = 3;
inline constexpr int kAverage = 4;

/// What n elements become when `ranks` ranks that all hold them reduce them: for what the host wrote, and as far as
/// copies are made at all. `out` may be `in`.
void reduce(void* out, const void* in, std::size_t n, int type, int operation, int ranks);

/// What `ranks` messages of n elements, one after the other, reduce to: into the first. False: a type that is not
/// known.
bool combine(unsigned char* messages, std::size_t n, int type, int operation, int ranks);

}  // namespace nullgpu
