#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <vector>

#include "tensor/cpu_kernels.h"
#include "tensor/cpu_state.h"

namespace qlp {
namespace {

using namespace cpu;

/// Elements that are read, changed and written together where averages are float32.
constexpr std::int64_t kUnquantizedBlock = 256;

/// Numbers of a block that lie two in a byte.
class PackedBlock {
 public:
  PackedBlock(const Average& average, std::int64_t block, std::int64_t count)
      : at_(average.values.data + block * average.codes.blocksize / 2),
        absmax_(average.codes.absmax.data + block * 4),
        code_(kValues) {
    load_row(code_.data(), average.codes.code.data, DType::float32, 4, kValues);
    const auto scale = load_as<float>(absmax_);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto codes = load_as<std::uint8_t>(at_ + i / 2);
      numbers.push_back(code_[i % 2 == 0 ? codes >> 4U : codes & 15U] * scale);
    }
  }
  void store() const {
    constexpr float kLeast = 1e-12F;  // quant_utils.py, scale_tensor
    const float scale = std::max(greatest_of(numbers), kLeast);
    store_as(absmax_, scale);
    for (std::size_t i = 0; i < numbers.size(); i += 2)
      store_as(at_ + i / 2,
               static_cast<std::uint8_t>(nearest(numbers[i] / scale) << 4U | nearest(numbers[i + 1] / scale)));
  }
  std::vector<float> numbers;

 private:
  static constexpr std::int64_t kValues = 16;

  /// The upper one of two that are as near.
  std::uint32_t nearest(float x) const {
    const auto above = std::upper_bound(code_.begin(), code_.end(), x);
    if (above == code_.begin()) return 0;
    const auto below = static_cast<std::uint32_t>(above - code_.begin()) - 1;
    if (above == code_.end()) return below;
    return x - code_[below] >= (*above - code_[below]) * 0.5F ? below + 1 : below;
  }

  std::byte* at_;
  std::byte* absmax_;
  std::vector<float> code_;
};

/// A run of an average, as numbers.
class Run {
 public:
  Run(const Average& average, std::int64_t from, std::int64_t count) : is_signed_(average.is_signed) {
    const std::int64_t values = average.codes.code.given() ? average.codes.code.numel() : 0;
    if (values == 16) {
      packed_.emplace(average, from / average.codes.blocksize, count);
    } else if (values > 0) {
      block_.emplace(average.values, average.codes, from / average.codes.blocksize, count);
    } else {
      at_ = average.values.data + from * 4;
      own_.resize(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < own_.size(); ++i) own_[i] = load_as<float>(at_ + i * 4);
    }
  }
  float& operator[](std::size_t i) { return packed_ ? packed_->numbers[i] : block_ ? block_->numbers[i] : own_[i]; }
  void store() const {
    if (packed_) return packed_->store();
    if (block_) return block_->store(is_signed_);
    for (std::size_t i = 0; i < own_.size(); ++i) store_as(at_ + i * 4, own_[i]);
  }

 private:
  bool is_signed_;
  std::byte* at_ = nullptr;
  std::vector<float> own_;
  std::optional<StateBlock> block_;
  std::optional<PackedBlock> packed_;
};

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

/// What all elements of a step have in common.
struct Step {
  explicit Step(const UpdateNumbers& numbers)
      : n(numbers),
        correction1(1 - std::pow(n.beta1, static_cast<double>(n.step))),
        correction2(std::sqrt(1 - std::pow(n.beta2, static_cast<double>(n.step)))),
        decay(1 - n.lr * n.weight_decay) {}
  UpdateNumbers n;
  double correction1, correction2, decay;
};

void mix(float& average, double beta, double x) { average = static_cast<float>(average * beta + (1 - beta) * x); }

/// What a parameter becomes.
double updated(UpdateRule rule, const Step& step, double p, double g, const std::vector<float*>& averages) {
  const UpdateNumbers& n = step.n;
  float& first = *averages[0];
  switch (rule) {
    case UpdateRule::lion: {
      const double direction = sign(first * n.beta1 + (1 - n.beta1) * g);
      mix(first, n.beta2, g);
      return p * step.decay - n.lr * direction;
    }
    case UpdateRule::rmsprop:
      g += p * n.weight_decay;
      mix(first, n.alpha, g * g);
      return p - n.lr * g / (std::sqrt(static_cast<double>(first)) + n.eps);
    case UpdateRule::ademamix: {
      float &slow = *averages[1], &squares = *averages[2];
      mix(first, n.beta1, g), mix(slow, n.beta3, g), mix(squares, n.beta2, g * g);
      const double denom = std::sqrt(static_cast<double>(squares)) / step.correction2 + n.eps;
      return (p - n.lr * (first / step.correction1 + n.alpha * slow) / denom) * step.decay;
    }
    case UpdateRule::adamw: {
      float& squares = *averages[1];
      mix(first, n.beta1, g), mix(squares, n.beta2, g * g);
      const double denom = std::sqrt(static_cast<double>(squares)) / step.correction2 + n.eps;
      return p * step.decay - n.lr * first / step.correction1 / denom;
    }
  }
  throw std::logic_error("no rule");
}

}  // namespace

void CpuKernels::update(StreamId, UpdateRule rule, const Array& parameter, const Array& grad,
                        const std::vector<Average>& averages, const UpdateNumbers& numbers) {
  require_memory(parameter), require_memory(grad);
  for (const Average& average : averages) require_memory(average.values);
  const std::int64_t n = parameter.numel();
  const Blockwise& codes = averages.front().codes;
  const std::int64_t size = codes.code.given() ? codes.blocksize : kUnquantizedBlock;
  const Step step(numbers);
  for (std::int64_t from = 0; from < n; from += size) {
    const std::int64_t count = std::min(size, n - from);
    std::vector<Run> runs;
    for (const Average& average : averages) runs.emplace_back(average, from, count);
    std::vector<float*> of_element(runs.size());
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::size_t a = 0; a < runs.size(); ++a) of_element[a] = &runs[a][static_cast<std::size_t>(i)];
      const Cell p = cell(parameter, from + i);
      store_number(p.at, p.dtype, updated(rule, step, p.value, cell(grad, from + i).value, of_element));
    }
    for (const Run& run : runs) run.store();
  }
}

std::shared_ptr<std::byte> CpuKernels::managed_memory(std::uint64_t bytes) {
  return {new std::byte[bytes](), std::default_delete<std::byte[]>()};  // the process's own
}

}  // namespace qlp
