// A tensor: shape, dtype and strides on a shared storage, with the edge that autograd hangs on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/dtype.h"
#include "base/ref.h"
#include "base/shape.h"
#include "tensor/storage.h"
#include "tensor/strides.h"

namespace qlp {

/// What autograd/ keeps on a tensor; opaque here, as c10::AutogradMetaInterface is.
class AutogradMeta {
 public:
  virtual ~AutogradMeta() = default;
};

class TensorImpl final : public RefCounted {
 public:
  TensorImpl(Ref<Storage> data, const Shape& dims, DType type)
      : storage(std::move(data)), shape(dims), strides(contiguous_strides(dims)), dtype(type) {}
  TensorImpl(Ref<Storage> data, const Shape& dims, const Strides& steps, DType type)
      : storage(std::move(data)), shape(dims), strides(steps), dtype(type), contiguous(is_contiguous(dims, steps)) {}

  Ref<Storage> storage;
  Shape shape;
  Strides strides;
  DType dtype;
  std::int64_t offset = 0;  ///< of the first element in the storage, in elements
  bool contiguous = true;
  bool is_view = false;
  bool requires_grad = false;  ///< of a leaf, or because of the node that made it
  std::unique_ptr<AutogradMeta> autograd;
};

/// A counted reference to a TensorImpl, as a name is in Python: copying it copies nothing.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return static_cast<bool>(impl_); }
  void reset() { impl_.reset(); }
  TensorImpl* impl() const { return impl_.get(); }
  bool is(const Tensor& other) const { return impl_ == other.impl_; }

  const Shape& shape() const { return impl_->shape; }
  std::int64_t size(int i) const { return impl_->shape[i]; }
  std::int64_t numel() const { return impl_->shape.numel(); }
  DType dtype() const { return impl_->dtype; }
  const Strides& strides() const { return impl_->strides; }
  std::int64_t offset() const { return impl_->offset; }
  /// The first element; only where the device computes.
  std::byte* data() const { return impl_->storage->data() + impl_->offset * size_of(impl_->dtype); }
  bool contiguous() const { return impl_->contiguous; }
  bool requires_grad() const { return impl_->requires_grad; }
  Storage& storage() const { return *impl_->storage; }
  bool on_host() const { return impl_->storage->place() != Place::device; }
  std::uint32_t use_count() const { return impl_->use_count(); }

  // Views: a new tensor on the same storage, outside of autograd.
  Tensor alias() const;                   ///< detach()
  Tensor view(const Shape& shape) const;  ///< of a contiguous tensor
  /// `start`: the first element, counted from that of this tensor.
  Tensor strided(const Shape& shape, const Strides& strides, std::int64_t start = 0) const;
  Tensor transpose(int a, int b) const;
  Tensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  /// `length` elements from `start` of a contiguous tensor, in one dimension.
  Tensor flat(std::int64_t start, std::int64_t length) const;

 private:
  Ref<TensorImpl> impl_;
};

}  // namespace qlp
