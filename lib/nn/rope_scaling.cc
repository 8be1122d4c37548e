#include "nn/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace qlp {
namespace {

/// As many numbers as there are frequencies: f(i) of each.
template <class F>
void each(const RopeBase& base, std::vector<double>& frequencies, F&& f) {
  for (std::int64_t i = 0; i < base.width / 2; ++i)
    frequencies[static_cast<std::size_t>(i)] = f(i, frequencies[static_cast<std::size_t>(i)]);
}

double pretrained_length(const RopeBase& base) {
  return static_cast<double>(base.scaling.original_max_position_embeddings.value_or(base.positions));
}

/// _compute_llama3_parameters: long waves are stretched, short ones are not, and those between in part.
void stretch_llama3(const RopeBase& base, std::vector<double>& frequencies) {
  const RopeScaling& s = base.scaling;
  const double length = pretrained_length(base);
  each(base, frequencies, [&](std::int64_t, double frequency) {
    const double wave = 2 * std::numbers::pi / frequency;
    if (wave > length / s.low_freq_factor) return frequency / s.factor;
    if (wave < length / s.high_freq_factor) return frequency;
    const double smooth = (length / wave - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    return (1 - smooth) * frequency / s.factor + smooth * frequency;
  });
}

/// _compute_yarn_parameters: by how many turns a frequency makes within the length of pretraining.
void stretch_yarn(const RopeBase& base, std::vector<double>& frequencies) {
  const RopeScaling& s = base.scaling;
  const auto width = static_cast<double>(base.width);
  const auto place_of = [&](double turns) {  // find_correction_dim
    return width * std::log(pretrained_length(base) / (turns * 2 * std::numbers::pi)) / (2 * std::log(base.theta));
  };
  double low = place_of(s.beta_fast), high = place_of(s.beta_slow);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, width - 1);
  constexpr double kNoWidth = 0.001;
  if (low == high) high += kNoWidth;
  each(base, frequencies, [&](std::int64_t i, double frequency) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    return frequency / s.factor * ramp + frequency * (1 - ramp);
  });
}

/// dynamic_frequency_update: the base grows with sequences that are longer than any before.
double theta_of(const RopeBase& base, std::int64_t length) {
  if (base.scaling.rope_type != RopeStretch::dynamic || length <= base.positions) return base.theta;
  const double factor = base.scaling.factor, width = static_cast<double>(base.width);
  const double stretch = static_cast<double>(length) / static_cast<double>(base.positions);
  return base.theta * std::pow(factor * stretch - (factor - 1), width / (width - 2));
}

/// yarn's get_mscale
double magnitude(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

}  // namespace

std::vector<double> inverse_frequencies(const RopeBase& base, std::int64_t length) {
  std::vector<double> frequencies(static_cast<std::size_t>(base.width / 2), 0.0);
  const double theta = theta_of(base, length);
  each(base, frequencies, [&](std::int64_t i, double) {
    return std::pow(theta, -2 * static_cast<double>(i) / static_cast<double>(base.width));
  });
  switch (base.scaling.rope_type) {
    case RopeStretch::linear:
      each(base, frequencies, [&](std::int64_t, double frequency) { return frequency / base.scaling.factor; });
      break;
    case RopeStretch::llama3:
      stretch_llama3(base, frequencies);
      break;
    case RopeStretch::yarn:
      stretch_yarn(base, frequencies);
      break;
    case RopeStretch::longrope: {
      const bool is_long = static_cast<double>(length) > pretrained_length(base);
      const std::vector<double>& factors = is_long ? base.scaling.long_factor : base.scaling.short_factor;
      if (factors.size() == frequencies.size())
        each(base, frequencies,
             [&](std::int64_t i, double frequency) { return frequency / factors[static_cast<std::size_t>(i)]; });
      break;
    }
    case RopeStretch::none:
    case RopeStretch::dynamic:
      break;
  }
  return frequencies;
}

double attention_scaling(const RopeBase& base) {
  const RopeScaling& s = base.scaling;
  if (s.rope_type == RopeStretch::yarn) {
    if (s.attention_factor) return *s.attention_factor;
    if (s.mscale.value_or(0) != 0 && s.mscale_all_dim.value_or(0) != 0)
      return magnitude(s.factor, *s.mscale) / magnitude(s.factor, *s.mscale_all_dim);
    return magnitude(s.factor, 1);
  }
  if (s.rope_type != RopeStretch::longrope || !s.original_max_position_embeddings) return 1;
  if (s.attention_factor) return *s.attention_factor;
  const double original = pretrained_length(base), stretch = static_cast<double>(base.positions) / original;
  return stretch <= 1 ? 1 : std::sqrt(1 + std::log(stretch) / std::log(original));
}

}  // namespace qlp
