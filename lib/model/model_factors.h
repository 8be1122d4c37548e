// Numbers that some families' layers multiply by. They change no size.
#pragma once

#include <span>
#include <string_view>

#include "model/family.h"

namespace qlp {

/// In the words of config.json.
struct ModelFactors {
  double embedding_multiplier = 1;      ///< Granite
  double residual_multiplier = 1;       ///< Granite: of what a block adds
  double attention_multiplier = 0;      ///< Granite: of scores; 0: one over the root of the head's width
  double logits_scaling = 1;            ///< Granite: what logits are divided by
  double logit_scale = 1;               ///< Cohere: what they are multiplied by
  double rope_local_base_freq = 10000;  ///< Gemma 3: rope_theta of the layers that slide
  friend bool operator==(const ModelFactors&, const ModelFactors&) = default;
};

/// One that a family reads, with the default of its class.
struct FamilyFactor {
  std::string_view key;
  double ModelFactors::*member;
  double of_class;
};

/// Source: transformers 4.57.1 and 5.24.0, models/<model_type>/configuration_<model_type>.py.
std::span<const FamilyFactor> factors_of(Family family);

}  // namespace qlp
