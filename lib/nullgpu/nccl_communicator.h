// A rank's end of NCCL's communicators, and the messages of ranks that are real.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nullgpu/exchange.h"
#include "nullgpu/status.h"

namespace nullgpu {

// ncclResult_t
inline constexpr int kSystemError = 2;
inline constexpr int kInvalidArgument = 4;
inline constexpr int kInvalidUsage = 5;
inline constexpr int kRemoteError = 6;
inline constexpr int kInProgress = 7;

struct Communicator {
  int size;
  int rank;
  int device;
  std::size_t log;
  // Ranks whose part of a gathered result may be written to: fewer than `size` where a split made a communicator whose
  // size only the other ranks know.
  int certain;
  std::unique_ptr<Exchange> exchange;  // with ranks that are real
  int splits = 0;
  std::uint64_t token = 0;
  std::atomic<int> error{ok};  // a rank has died
  std::atomic<int> state{ok};  // kInProgress until it is asked for once, where the program said blocking = 0
};

/// None where there is no such communicator.
Communicator* find_communicator(void* handle);

/// Short enough to be really sent; comes out alike on all ranks that are real.
bool is_short(const Communicator& communicator, std::size_t bytes);

/// What lies at an address of the host or a device, and whether the host wrote it.
Exchange::Message message_of(const void* in, std::size_t bytes);

/// The same without the bytes.
Exchange::Message announcement(const void* in, std::size_t bytes);

/// Into memory; what nobody wrote on the host reads as zero.
void deliver(void* out, const unsigned char* bytes, std::size_t n, bool known);

/// Every rank's message; empty when a rank has died.
std::vector<Exchange::Message> meet(Communicator& communicator, const Exchange::Message& mine);

}  // namespace nullgpu
