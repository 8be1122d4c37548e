#include "step/mxfp4.h"

#include <algorithm>

#include "tensor/factories.h"

namespace qlp {
namespace {

constexpr std::int64_t kInBlock = 32;                    ///< numbers that share a scale
constexpr std::int64_t kRowsInChunk = 32768LL * 1024LL;  ///< rows_per_chunk

/// Codes of four bits as indices: (blocks & 0x0F).to(dtype)
Tensor indices(Context& ctx, std::int64_t rows, DType dtype) {
  const Tensor nibbles = empty(ctx, {rows, kInBlock / 2}, DType::uint8, Op::logical_or);
  return empty(ctx, {rows, kInBlock / 2}, dtype, Op::to_copy);
}

/// lut[index]; kernels take indices of int64 only (ATen/native/TensorAdvancedIndexing.cpp, make_info).
void look_up(Context& ctx, const Tensor& index, DType dtype) {
  Tensor wide = index;
  if (index.dtype() != DType::int64) wide = empty(ctx, index.shape(), DType::int64, Op::to_copy);
  const Tensor picked = empty(ctx, index.shape(), dtype, Op::index);
}

/// _convert_moe_packed_tensors of 5.24 has the indices of one half at a time; convert_moe_packed_tensors of 4.57 of
/// both.
void convert_chunk(Context& ctx, std::int64_t rows, DType dtype, Loader loader) {
  if (loader == Loader::by_name) {
    for (int half = 0; half < 2; ++half) look_up(ctx, indices(ctx, rows, DType::int32), dtype);
  } else {
    const Tensor low = indices(ctx, rows, DType::int64), high = indices(ctx, rows, DType::int64);
    for (const Tensor* index : {&low, &high}) look_up(ctx, *index, dtype);
  }
  scratch(ctx, static_cast<std::uint64_t>(rows) * size_of(DType::float32), Op::pow);  // ldexp
}

}  // namespace

Tensor dequantized_mxfp4(Context& ctx, const Shape& shape, DType dtype, Loader loader) {
  const std::int64_t rows = shape.numel() / kInBlock;
  const Tensor blocks = empty(ctx, {rows, kInBlock / 2}, DType::uint8, Op::parameter);
  const Tensor scales = empty(ctx, {rows}, DType::uint8, Op::parameter);
  Tensor out;
  {
    Tensor exponents;
    {
      const Tensor wide = empty(ctx, {rows}, DType::int32, Op::to_copy);
      exponents = empty(ctx, {rows}, DType::int32, Op::sub);
    }
    const Tensor values = empty(ctx, {kInBlock / 2}, dtype, Op::to_copy);
    out = empty(ctx, {rows, kInBlock}, dtype, Op::empty);
    for (std::int64_t row = 0; row < rows; row += kRowsInChunk)
      convert_chunk(ctx, std::min(kRowsInChunk, rows - row), dtype, loader);
    if (loader == Loader::by_name) return empty(ctx, shape, dtype, Op::contiguous);
  }
  return empty(ctx, shape, dtype, Op::contiguous);
}

}  // namespace qlp
