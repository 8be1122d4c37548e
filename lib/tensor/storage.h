// The memory of tensors: one block of the allocator, given back when the last tensor on it goes.
#pragma once

#include <cstdint>

#include "base/ref.h"
#include "tensor/device.h"

namespace qlp {

/// Where a storage is. On the host it takes nothing of the device.
enum class Place : std::uint8_t { device, host };

class Storage final : public RefCounted {
 public:
  Storage(Device& device, std::uint64_t bytes, StreamId stream, AllocationLabel label, Place place = Place::device)
      : device_(device), bytes_(bytes), stream_(stream), place_(place), label_(label) {
    take();
  }
  ~Storage() override {
    if (block_) device_.free(block_);
  }

  std::uint64_t bytes() const { return bytes_; }
  Place place() const { return place_; }
  const Block* block() const { return block_; }
  const AllocationLabel& label() const { return label_; }

  /// untyped_storage().resize_(): frees or takes memory while the tensors on it stay. Taken on `stream`.
  void resize(std::uint64_t bytes, StreamId stream) {
    if (bytes == bytes_) return;
    if (block_) device_.free(block_), block_ = nullptr;
    bytes_ = bytes, stream_ = stream;
    take();
  }
  void record_stream(StreamId stream) {
    if (block_) device_.record_stream(block_, stream);
  }
  void set_label(AllocationLabel label) {
    label_ = label;
    if (block_) device_.relabel(block_, label);
  }

 private:
  void take() {
    if (bytes_ && place_ == Place::device) block_ = device_.allocate(bytes_, stream_, label_);
  }
  Device& device_;
  Block* block_ = nullptr;
  std::uint64_t bytes_;
  StreamId stream_;
  Place place_;
  AllocationLabel label_;
};

}  // namespace qlp
