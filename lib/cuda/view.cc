#include "cuda/view.h"

#include <stdexcept>

namespace qlp {
namespace {

constexpr bool same(DType dtype, kernels::Type type) { return static_cast<int>(dtype) == static_cast<int>(type); }
static_assert(same(DType::float32, kernels::Type::float32) && same(DType::float16, kernels::Type::float16) &&
              same(DType::bfloat16, kernels::Type::bfloat16) && same(DType::float64, kernels::Type::float64) &&
              same(DType::int64, kernels::Type::int64) && same(DType::int32, kernels::Type::int32) &&
              same(DType::int16, kernels::Type::int16) && same(DType::int8, kernels::Type::int8) &&
              same(DType::uint8, kernels::Type::uint8) && same(DType::boolean, kernels::Type::boolean));
static_assert(Shape::kMaxRank == kernels::kMaxRank);

}  // namespace

kernels::View view_of(const Array& array, const Shape& shape) {
  if (shape.numel() != 0 && !array.given()) throw std::logic_error("an operation on memory that is gone");
  kernels::View view;
  view.data = array.data;
  view.type = static_cast<kernels::Type>(array.dtype);
  view.rank = static_cast<int>(shape.rank());
  const int missing = view.rank - static_cast<int>(array.shape.rank());
  if (missing < 0) throw std::logic_error("an array of more dimensions than the result");
  for (int i = 0; i < view.rank; ++i) {
    view.size[i] = shape[i];
    if (i < missing) continue;
    const std::int64_t own = array.size(i - missing);
    if (own != shape[i] && own != 1)
      throw std::logic_error(to_string(array.shape) + " does not broadcast to " + to_string(shape));
    view.stride[i] = own == 1 ? 0 : array.stride(i - missing);
  }
  return view;
}

kernels::View dense_view_of(const Array& array) {
  if (!is_contiguous(array.shape, array.strides)) throw std::logic_error("an array that has gaps");
  return view_of(array);
}

kernels::View batched(const Array& array) {
  kernels::View view = view_of(array);
  if (view.rank == 3) return view;
  if (view.rank != 2) throw std::logic_error("a matrix product with " + to_string(array.shape));
  for (int i = 2; i-- > 0;) view.size[i + 1] = view.size[i], view.stride[i + 1] = view.stride[i];
  view.size[0] = 1, view.stride[0] = 0;
  view.rank = 3;
  return view;
}

}  // namespace qlp
