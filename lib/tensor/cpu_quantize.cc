#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tensor/cpu_codes.h"
#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"

namespace qlp {
namespace {

using namespace cpu;

/// Elements of an array that lies densely.
std::vector<float> numbers_of(const Array& array, std::int64_t first, std::int64_t count) {
  std::vector<float> out(static_cast<std::size_t>(count));
  const auto size = static_cast<std::int64_t>(size_of(array.dtype));
  load_row(out.data(), array.data + first * size, array.dtype, size, count);
  return out;
}

constexpr std::int64_t kBlock = 64, kNestedBlock = 256;  // of the formats that gemm_4bit knows

void require_dense(const Array& array) {
  require_memory(array);
  if (!is_contiguous(array.shape, array.strides)) throw std::logic_error("blocks of an array that has gaps");
}

}  // namespace

void CpuKernels::quantize_4bit(StreamId, const Array& packed, const Blockwise& statistics, const Array& x, bool nf4) {
  for (const Array* array : {&packed, &statistics.absmax, &x}) require_dense(*array);
  const std::int64_t n = x.numel();
  for (std::int64_t first = 0, block = 0; first < n; first += statistics.blocksize, ++block) {
    const std::vector<float> values = numbers_of(x, first, std::min(statistics.blocksize, n - first));
    const float absmax = greatest_of(values);
    store_as(statistics.absmax.data + block * 4, absmax);
    for (std::size_t i = 0; i < values.size(); i += 2) {
      const auto code = [&](std::size_t j) {
        const float scaled = j < values.size() && absmax > 0 ? values[j] * (1.0F / absmax) : 0.0F;
        return nf4 ? nf4_code(scaled) : fp4_code(scaled);
      };
      const auto byte = static_cast<std::uint8_t>(code(i) << 4U | code(i + 1));
      store_as(packed.data + (first + static_cast<std::int64_t>(i)) / 2, byte);
    }
  }
}

void CpuKernels::dequantize_4bit(StreamId, const Array& out, const Array& packed, const Blockwise& statistics) {
  for (const Array* array : {&out, &packed, &statistics.absmax, &statistics.code}) require_dense(*array);
  const std::vector<float> code = numbers_of(statistics.code, 0, 16);
  const std::int64_t n = out.numel();
  for (std::int64_t first = 0, block = 0; first < n; first += statistics.blocksize, ++block) {
    const auto absmax = load_as<float>(statistics.absmax.data + block * 4);
    std::vector<float> values(static_cast<std::size_t>(std::min(statistics.blocksize, n - first)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto byte = load_as<std::uint8_t>(packed.data + (first + static_cast<std::int64_t>(i)) / 2);
      values[i] = code[i % 2 == 0 ? byte >> 4U : byte & 15U] * absmax;
    }
    const auto size = static_cast<std::int64_t>(size_of(out.dtype));
    store_row(out.data + first * size, out.dtype, size, values.data(), static_cast<std::int64_t>(values.size()));
  }
}

void CpuKernels::gemm_4bit(StreamId stream, const Array& out, const Array& x, const FourBitArrays& weight) {
  Blockwise statistics{weight.absmax, weight.code, kBlock};
  std::vector<float> absmax;
  if (weight.absmax.dtype == DType::uint8) {
    absmax.resize(static_cast<std::size_t>(weight.absmax.numel()));
    statistics.absmax = {reinterpret_cast<std::byte*>(absmax.data()), DType::float32, weight.absmax.shape,
                         weight.absmax.strides};
    dequantize_8bit(stream, statistics.absmax, weight.absmax, {weight.nested_absmax, weight.nested_code, kNestedBlock});
    binary(stream, Binary::add, statistics.absmax, statistics.absmax, weight.offset, 1);
  }
  // The transpose of what the packed weight holds, row by row.
  std::vector<float> dense(static_cast<std::size_t>(weight.shape.numel()));
  Array turned{reinterpret_cast<std::byte*>(dense.data()), DType::float32, weight.shape,
               contiguous_strides(weight.shape)};
  dequantize_4bit(stream, turned, weight.packed, statistics);
  turned.shape = {weight.shape[1], weight.shape[0]};
  std::swap(turned.strides[0], turned.strides[1]);
  gemm(stream, out, x, turned, 1, 0);
}

void CpuKernels::quantize_8bit(StreamId, const Array& out, const Blockwise& statistics, const Array& x) {
  for (const Array* array : {&out, &x, &statistics.absmax, &statistics.code}) require_dense(*array);
  const std::vector<float> code = numbers_of(statistics.code, 0, 256);
  const std::int64_t n = x.numel();
  for (std::int64_t first = 0, block = 0; first < n; first += statistics.blocksize, ++block) {
    const std::vector<float> values = numbers_of(x, first, std::min(statistics.blocksize, n - first));
    const float absmax = greatest_of(values);
    store_as(statistics.absmax.data + block * 4, absmax);
    for (std::size_t i = 0; i < values.size(); ++i)
      store_as(out.data + first + static_cast<std::int64_t>(i),
               nearest_code(code, absmax > 0 ? values[i] * (1.0F / absmax) : 0.0F));
  }
}

void CpuKernels::dequantize_8bit(StreamId, const Array& out, const Array& codes, const Blockwise& statistics) {
  for (const Array* array : {&out, &codes, &statistics.absmax, &statistics.code}) require_dense(*array);
  const std::vector<float> code = numbers_of(statistics.code, 0, 256);
  const auto size = static_cast<std::int64_t>(size_of(out.dtype));
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    const auto absmax = load_as<float>(statistics.absmax.data + i / statistics.blocksize * 4);
    store_number(out.data + i * size, out.dtype, code[load_as<std::uint8_t>(codes.data + i)] * absmax);
  }
}

}  // namespace qlp
