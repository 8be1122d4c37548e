// Segments of a GPU's memory, for the same caching allocator as in a dry run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include <cuda.h>

#include "memory/segment_source.h"

namespace qlp {

/// cudaMalloc, and where segments grow the driver's virtual memory. What is left is given back when this object goes.
/// All functions throw CudaError for anything but a lack of memory.
class CudaSegments final : public SegmentSource {
 public:
  /// On the current device.
  CudaSegments();
  ~CudaSegments() override;

  std::uint64_t capacity() const override { return capacity_; }
  std::optional<std::uint64_t> allocate(std::uint64_t bytes) override;
  void release(std::uint64_t address, std::uint64_t bytes) override;
  std::uint64_t reserve(std::uint64_t bytes) override;
  void unreserve(std::uint64_t address, std::uint64_t bytes) override;
  bool map(std::uint64_t address, std::uint64_t bytes) override;
  void unmap(std::uint64_t address, std::uint64_t bytes) override;

  /// Bytes taken and not given back.
  std::uint64_t used() const { return used_; }

 private:
  void unmap_page(std::uint64_t address);

  int device_ = 0;
  std::uint64_t capacity_ = 0, used_ = 0;
  std::map<std::uint64_t, std::uint64_t> segments_, spaces_;     ///< bytes by address
  std::map<std::uint64_t, CUmemGenericAllocationHandle> pages_;  ///< mapped, each of the driver's granularity
};

}  // namespace qlp
