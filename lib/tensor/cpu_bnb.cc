#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_state.h"

namespace qlp {
namespace {

using namespace cpu;

/// Elements that are read, changed and written together where states are float32.
constexpr std::int64_t kBlock = 256;

/// A run of one average, as numbers.
class Average {
 public:
  /// The `which`-th average of a state of `n` elements each.
  Average(const Array& state, const Blockwise& codes, std::int64_t which, std::int64_t n, std::int64_t from,
          std::int64_t count)
      : codes_(codes) {
    const std::int64_t start = which * n + from;
    if (!codes.code.given()) {
      at_ = state.data + start * 4;
      own_.resize(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < own_.size(); ++i) own_[i] = load_as<float>(at_ + i * 4);
      return;
    }
    // Averages lie densely one behind the other, the maxima of each begin a row of their own.
    Array of_average = state;
    of_average.data += which * n;
    codes_.absmax.data += which * ((n + codes.blocksize - 1) / codes.blocksize) * 4;
    block_.emplace(of_average, codes_, from / codes.blocksize, count);
  }
  float& operator[](std::size_t i) { return block_ ? block_->numbers[i] : own_[i]; }
  void store(bool keeps_sign) const {
    if (block_) return block_->store(keeps_sign);
    for (std::size_t i = 0; i < own_.size(); ++i) store_as(at_ + i * 4, own_[i]);
  }

 private:
  Blockwise codes_;
  std::byte* at_ = nullptr;
  std::vector<float> own_;
  std::optional<StateBlock> block_;
};

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

}  // namespace

void CpuKernels::bnb_update(BnbRule rule, const Array& parameter, const Array& grad, const BnbState& state,
                            const BnbNumbers& numbers) {
  for (const Array* array : {&parameter, &grad, &state.first}) require_memory(*array);
  const std::int64_t n = parameter.numel();
  const std::int64_t size = state.first_codes.code.given() ? state.first_codes.blocksize : kBlock;
  const auto step = static_cast<double>(numbers.step);
  const double correction1 = 1 - std::pow(numbers.beta1, step);
  const double correction2 = std::sqrt(1 - std::pow(numbers.beta2, step));
  const auto mix = [](float& average, double beta, double x) {
    average = static_cast<float>(average * beta + (1 - beta) * x);
  };
  for (std::int64_t from = 0; from < n; from += size) {
    const std::int64_t count = std::min(size, n - from);
    Average m(state.first, state.first_codes, 0, n, from, count);
    std::optional<Average> slow, squares;
    if (rule == BnbRule::ademamix) {
      slow.emplace(state.first, state.first_codes, 1, n, from, count);
      squares.emplace(state.second, state.second_codes, 0, n, from, count);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const auto j = static_cast<std::size_t>(i);
      const Cell p = cell(parameter, from + i);
      const double g = cell(grad, from + i).value;
      double direction = 0;
      switch (rule) {
        case BnbRule::lion:
          direction = sign(m[j] * numbers.beta1 + (1 - numbers.beta1) * g);
          mix(m[j], numbers.beta2, g);
          break;
        case BnbRule::rmsprop:
          mix(m[j], numbers.beta1, g * g);
          direction = g / (std::sqrt(static_cast<double>(m[j])) + numbers.eps);
          break;
        case BnbRule::ademamix:
          mix(m[j], numbers.beta1, g), mix((*slow)[j], numbers.beta3, g), mix((*squares)[j], numbers.beta2, g * g);
          direction = (m[j] / correction1 + numbers.alpha * (*slow)[j]) /
                      (std::sqrt(static_cast<double>((*squares)[j])) / correction2 + numbers.eps);
          break;
      }
      store_number(p.at, p.dtype, p.value - numbers.lr * direction);
    }
    m.store(true);
    if (slow) slow->store(true), squares->store(false);
  }
}

}  // namespace qlp
