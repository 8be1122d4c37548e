// What a compute capability says about a GPU, and what its best-known GPU has where the environment says nothing.
#pragma once

#include <cstddef>
#include <string>

namespace nullgpu {

struct Capability {
  int version;  // 80
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int shared_bytes_per_multiprocessor;
  int shared_bytes_per_block_optin;
  int reserved_shared_bytes_per_block;
  int fp32_per_fp64;  // ratio of rates
  bool cluster_launch;
  // Of the GPU in the comment.
  int multiprocessors;
  std::size_t l2_bytes;
  int clock_khz;
  int memory_khz;
  int bus_bits;
};

/// Null where that capability is not known.
const Capability* find_capability(int version);
std::string known_capabilities();

}  // namespace nullgpu
