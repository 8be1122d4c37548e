// The memory of tensors: one block of the allocator, given back when the last tensor on it goes.
#pragma once

#include <cstdint>

#include "base/ref.h"
#include "tensor/device.h"

namespace qlp {

class Storage final : public RefCounted {
 public:
  Storage(Device& device, std::uint64_t bytes, StreamId stream, AllocationLabel label)
      : device_(device), bytes_(bytes), stream_(stream), label_(label) {
    if (bytes) block_ = device.allocate(bytes, stream, label);
  }
  ~Storage() override {
    if (block_) device_.free(block_);
  }

  std::uint64_t bytes() const { return bytes_; }
  const Block* block() const { return block_; }
  const AllocationLabel& label() const { return label_; }

  /// untyped_storage().resize_(): frees or takes memory while the tensors on it stay. Taken on `stream`.
  void resize(std::uint64_t bytes, StreamId stream) {
    if (bytes == bytes_) return;
    if (block_) device_.free(block_), block_ = nullptr;
    bytes_ = bytes, stream_ = stream;
    if (bytes) block_ = device_.allocate(bytes, stream, label_);
  }
  void record_stream(StreamId stream) {
    if (block_) device_.record_stream(block_, stream);
  }
  void set_label(AllocationLabel label) {
    label_ = label;
    if (block_) device_.relabel(block_, label);
  }

 private:
  Device& device_;
  Block* block_ = nullptr;
  std::uint64_t bytes_;
  StreamId stream_;
  AllocationLabel label_;
};

}  // namespace qlp
