#include "tensor/tensor.h"

#include <cassert>
#include <utility>

namespace qlp {

Tensor Tensor::alias() const { return strided(impl_->shape, impl_->strides); }

Tensor Tensor::view(const Shape& shape) const {
  assert(contiguous() && shape.numel() == numel());
  auto impl = make_ref<TensorImpl>(impl_->storage, shape, impl_->dtype);
  impl->offset = impl_->offset;
  impl->is_view = true;
  return Tensor(std::move(impl));
}

Tensor Tensor::strided(const Shape& shape, const Strides& strides, std::int64_t start) const {
  auto impl = make_ref<TensorImpl>(impl_->storage, shape, strides, impl_->dtype);
  impl->offset = impl_->offset + start;
  impl->is_view = true;
  return Tensor(std::move(impl));
}

Tensor Tensor::transpose(int a, int b) const {
  const auto index = [&](int i) {
    return static_cast<std::size_t>(i < 0 ? i + static_cast<int>(impl_->shape.rank()) : i);
  };
  Strides swapped = impl_->strides;
  std::swap(swapped[index(a)], swapped[index(b)]);
  return strided(impl_->shape.with(a, size(b)).with(b, size(a)), swapped);
}

Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length) const {
  const auto index = static_cast<std::size_t>(dim < 0 ? dim + static_cast<int>(impl_->shape.rank()) : dim);
  assert(start >= 0 && start + length <= impl_->shape[static_cast<int>(index)]);
  return strided(impl_->shape.with(dim, length), impl_->strides, start * impl_->strides[index]);
}

Tensor Tensor::flat(std::int64_t start, std::int64_t length) const {
  assert(contiguous() && start >= 0 && start + length <= numel());
  return strided({length}, contiguous_strides({length}), start);
}

}  // namespace qlp
