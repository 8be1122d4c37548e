// How rotary frequencies are stretched past the length of pretraining (transformers modeling_rope_utils.py, 4.43 to
// 5.24). None of it changes a size.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace qlp {

enum class RopeStretch : std::uint8_t { none, linear, dynamic, yarn, llama3, longrope };

/// In the words of config.json (rope_scaling, rope_parameters).
struct RopeScaling {
  RopeStretch rope_type = RopeStretch::none;
  double factor = 1;
  std::optional<std::int64_t> original_max_position_embeddings;
  double low_freq_factor = 1, high_freq_factor = 4;  ///< llama3
  double beta_fast = 32, beta_slow = 1;              ///< yarn
  bool truncate = true;                              ///< yarn
  std::optional<double> mscale, mscale_all_dim;      ///< yarn
  std::optional<double> attention_factor;            ///< yarn, longrope
  std::vector<double> short_factor, long_factor;     ///< longrope; none: all 1
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

struct RopeBase {
  std::int64_t width = 0;      ///< of the rotated part of a head
  double theta = 10000;        ///< angles are position * theta^(-2 i / width)
  std::int64_t positions = 0;  ///< max_position_embeddings
  RopeScaling scaling{};
};

/// inv_freq [width / 2], for sequences of `length`. `dynamic` is as none for those that are no longer than `positions`.
std::vector<double> inverse_frequencies(const RopeBase& base, std::int64_t length);
/// Of cosines and sines (attention_scaling).
double attention_scaling(const RopeBase& base);

}  // namespace qlp
