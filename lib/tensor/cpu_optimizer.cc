#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_state.h"

namespace qlp {
namespace {

using namespace cpu;

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

/// optimi/stableadamw.py: the rate falls where gradients are larger than their averages say.
void CpuKernels::stable_adamw(StreamId, const Array& parameter, const Array& grad, const Array& exp_avg,
                              const Array& exp_avg_sq, const Array& compensation, const AdamWNumbers& numbers) {
  require_same_layout(parameter, grad);
  const auto step = static_cast<double>(numbers.step);
  const auto without_bias = [step](double beta) {
    const double power = std::pow(beta, step);
    return (power - beta) / (power - 1);
  };
  const double beta1 = without_bias(numbers.beta1), beta2 = without_bias(numbers.beta2);
  double ratios = 0;
  for (std::int64_t i = 0; i < parameter.numel(); ++i) {
    const Cell m = cell(exp_avg, i), v = cell(exp_avg_sq, i);
    const double g = cell(grad, i).value, second = v.value * beta2 + g * g * (1 - beta2);
    store_number(m.at, m.dtype, m.value * beta1 + g * (1 - beta1)), store_number(v.at, v.dtype, second);
    ratios += g * g / std::max(second, numbers.eps * numbers.eps);
  }
  const double rate = numbers.lr / std::max(1.0, std::sqrt(ratios / static_cast<double>(parameter.numel())));
  const bool compensates = compensation.dtype == parameter.dtype;
  for (std::int64_t i = 0; i < parameter.numel(); ++i) {
    const Cell p = cell(parameter, i);
    const double before = p.value * (1 - rate * numbers.weight_decay);
    double update = -rate * cell(exp_avg, i).value / (std::sqrt(cell(exp_avg_sq, i).value) + numbers.eps);
    if (compensates) update += cell(compensation, i).value;
    store_number(p.at, p.dtype, before + update);
    if (!compensates) continue;
    const Cell lost = cell(compensation, i);
    store_number(lost.at, lost.dtype, update + (before - cell(parameter, i).value));
  }
}

}  // namespace qlp
