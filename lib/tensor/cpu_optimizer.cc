#include <cmath>
#include <stdexcept>
#include <vector>

#include "tensor/cpu_codes.h"
#include "tensor/cpu_kernels.h"
#include "tensor/cpu_rows.h"

namespace qlp {
namespace {

using namespace cpu;

/// A block of a state in 8 bits, as numbers, and back.
class StateBlock {
 public:
  StateBlock(const Array& codes, const Blockwise& statistics, std::int64_t block, std::int64_t count)
      : at_(codes.data + block * statistics.blocksize), absmax_(statistics.absmax.data + block * 4) {
    code_.resize(256);
    load_row(code_.data(), statistics.code.data, DType::float32, 4, 256);
    const auto scale = load_as<float>(absmax_);
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(code_[load_as<std::uint8_t>(at_ + i)] * scale);
  }
  /// `keeps_sign`: a code of the other sign gives way to its neighbour.
  void store(bool keeps_sign) const {
    const float scale = greatest_of(numbers);
    store_as(absmax_, scale);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::uint8_t code = scale > 0 ? nearest_code(code_, numbers[i] / scale) : nearest_code(code_, 0);
      if (keeps_sign && std::signbit(code_[code]) != std::signbit(numbers[i]))
        code = static_cast<std::uint8_t>(numbers[i] > 0 ? code + 1 : std::max(code - 1, 0));
      store_as(at_ + i, code);
    }
  }
  std::vector<float> numbers;

 private:
  std::byte* at_;
  std::byte* absmax_;
  std::vector<float> code_;
};

/// The number of a dense array, and its place.
struct Cell {
  std::byte* at;
  DType dtype;
  double value;
};
Cell cell(const Array& array, std::int64_t i) {
  std::byte* const at = array.data + i * static_cast<std::int64_t>(size_of(array.dtype));
  return {at, array.dtype, load_number(at, array.dtype)};
}

void require_same_layout(const Array& a, const Array& b) {
  require_memory(a), require_memory(b);
  if (a.shape != b.shape || a.strides != b.strides)
    throw std::logic_error("a state that lies as its parameter does not");
}

}  // namespace

void CpuKernels::adamw(StreamId, const Array& parameter, const Array& grad, const Array& exp_avg,
                       const Array& exp_avg_sq, const AdamWNumbers& numbers) {
  require_same_layout(parameter, grad);
  require_memory(exp_avg), require_memory(exp_avg_sq);
  const auto step = static_cast<double>(numbers.step);
  const double correction1 = 1 - std::pow(numbers.beta1, step);
  const double correction2 = std::sqrt(1 - std::pow(numbers.beta2, step));
  for (std::int64_t i = 0; i < parameter.numel(); ++i) {
    const Cell p = cell(parameter, i), m = cell(exp_avg, i), v = cell(exp_avg_sq, i);
    const double g = cell(grad, i).value;
    const double first = m.value + (g - m.value) * (1 - numbers.beta1);
    const double second = v.value * numbers.beta2 + g * g * (1 - numbers.beta2);
    store_number(m.at, m.dtype, first), store_number(v.at, v.dtype, second);
    const double denom = std::sqrt(second) / correction2 + numbers.eps;
    store_number(p.at, p.dtype,
                 p.value * (1 - numbers.lr * numbers.weight_decay) - numbers.lr / correction1 * first / denom);
  }
}

void CpuKernels::adamw_8bit(StreamId, const Array& parameter, const Array& grad, const Array& exp_avg,
                            const Blockwise& first, const Array& exp_avg_sq, const Blockwise& second,
                            const AdamWNumbers& numbers) {
  require_same_layout(parameter, grad);
  for (const Array* array : {&exp_avg, &exp_avg_sq, &first.absmax, &first.code, &second.absmax, &second.code})
    require_memory(*array);
  const auto step = static_cast<double>(numbers.step);
  const double correction1 = 1 - std::pow(numbers.beta1, step);
  const double correction2 = std::sqrt(1 - std::pow(numbers.beta2, step));
  const double step_size = numbers.lr * correction2 / correction1;
  const std::int64_t n = parameter.numel();
  for (std::int64_t from = 0, block = 0; from < n; from += first.blocksize, ++block) {
    const std::int64_t count = std::min(first.blocksize, n - from);
    StateBlock m(exp_avg, first, block, count), v(exp_avg_sq, second, block, count);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto j = static_cast<std::size_t>(i);
      const Cell p = cell(parameter, from + i);
      const double g = cell(grad, from + i).value;
      m.numbers[j] = static_cast<float>(m.numbers[j] * numbers.beta1 + (1 - numbers.beta1) * g);
      v.numbers[j] = static_cast<float>(v.numbers[j] * numbers.beta2 + (1 - numbers.beta2) * g * g);
      const double denom = std::sqrt(static_cast<double>(v.numbers[j])) + correction2 * numbers.eps;
      const double updated = p.value - step_size * m.numbers[j] / denom;
      store_number(p.at, p.dtype, updated * (1 - numbers.lr * numbers.weight_decay));
    }
    m.store(true), v.store(false);
  }
}

}  // namespace qlp
