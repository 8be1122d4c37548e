// A tensor: shape, dtype and strides on a shared storage, with the edge that autograd hangs on it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/dtype.h"
#include "base/ref.h"
#include "base/shape.h"
#include "tensor/storage.h"

namespace qlp {

/// What autograd/ keeps on a tensor; opaque here, as c10::AutogradMetaInterface is.
class AutogradMeta {
 public:
  virtual ~AutogradMeta() = default;
};

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

/// Strides of a dense row-major tensor.
inline Strides contiguous_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    strides[i] = step;
    step *= shape[static_cast<int>(i)];
  }
  return strides;
}
/// True if the elements lie row-major without gaps; dimensions of size 1 do not matter.
bool is_contiguous(const Shape& shape, const Strides& strides);

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
  bool contiguous() const { return impl_->contiguous; }
  bool requires_grad() const { return impl_->requires_grad; }
  Storage& storage() const { return *impl_->storage; }
  bool on_host() const { return impl_->storage->place() != Place::device; }
  std::uint32_t use_count() const { return impl_->use_count(); }

  // Views: a new tensor on the same storage, outside of autograd.
  Tensor alias() const;                   ///< detach()
  Tensor view(const Shape& shape) const;  ///< of a contiguous tensor
  Tensor strided(const Shape& shape, const Strides& strides) const;
  Tensor transpose(int a, int b) const;
  Tensor narrow(int dim, std::int64_t length) const;  ///< offsets take no memory, so none is kept

 private:
  Ref<TensorImpl> impl_;
};

}  // namespace qlp
