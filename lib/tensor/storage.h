// The memory of tensors: one block of the allocator, given back when the last tensor on it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/ref.h"
#include "tensor/device.h"

namespace qlp {

/// Where a storage is. All but the first take nothing of the device.
enum class Place : std::uint8_t {
  device,
  host,    ///< pageable memory of the process
  pinned,  ///< page-locked memory of the process
  mapped,  ///< pages of a checkpoint file
  meta,    ///< nowhere: torch's meta device, and host memory that is never written to
};

class Storage final : public RefCounted {
 public:
  Storage(Device& device, std::uint64_t bytes, StreamId stream, AllocationLabel label, Place place = Place::device)
      : device_(device), bytes_(bytes), stream_(stream), place_(place), label_(label) {
    take();
  }
  ~Storage() override { give_back(); }

  std::uint64_t bytes() const { return bytes_; }
  Place place() const { return place_; }
  const Block* block() const { return block_; }
  const AllocationLabel& label() const { return label_; }
  /// The first byte; only where the device computes. Null where there is no memory: nothing may be read or written.
  std::byte* data() {
    if (block_) return reinterpret_cast<std::byte*>(block_->address);  // NOLINT(performance-no-int-to-ptr): that it is
    return on_host_books() ? host_data() : nullptr;
  }

  /// untyped_storage().resize_(): frees or takes memory while the tensors on it stay. Taken on `stream`.
  void resize(std::uint64_t bytes, StreamId stream) {
    if (bytes == bytes_) return;
    give_back();
    bytes_ = bytes, stream_ = stream;
    take();
  }
  void record_stream(StreamId stream) {
    if (block_) device_.record_stream(block_, stream);
  }
  void set_label(AllocationLabel label) {
    if (block_) device_.relabel(block_, label);
    if (on_host_books()) device_.host().relabel(host_kind(), bytes_, label_.category, label.category);
    label_ = label;
  }

 private:
  /// Taken when it is first looked at: the pages of a checkpoint that nobody reads need none.
  std::byte* host_data() {
    if (!host_data_) host_data_.reset(new std::byte[bytes_]);
    return host_data_.get();
  }
  bool on_host_books() const { return bytes_ && place_ != Place::device && place_ != Place::meta; }
  HostKind host_kind() const {
    return place_ == Place::pinned ? HostKind::pinned : place_ == Place::mapped ? HostKind::mapped : HostKind::pageable;
  }
  void take() {
    if (bytes_ && place_ == Place::device) block_ = device_.allocate(bytes_, stream_, label_);
    if (on_host_books()) host_taken_ = device_.host().take(host_kind(), bytes_, label_.category);
  }
  void give_back() {
    if (block_) device_.free(block_), block_ = nullptr;
    host_data_.reset();
    if (on_host_books() && !device_.retired())
      device_.host().give_back(host_kind(), bytes_, host_taken_, label_.category);
  }
  Device& device_;
  Block* block_ = nullptr;
  std::uint64_t bytes_;
  std::uint64_t host_taken_ = 0;
  std::unique_ptr<std::byte[]> host_data_;
  StreamId stream_;
  Place place_;
  AllocationLabel label_;
};

}  // namespace qlp
