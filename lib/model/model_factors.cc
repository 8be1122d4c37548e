#include "model/model_factors.h"

#include <array>

namespace qlp {
namespace {

constexpr std::array<FamilyFactor, 4> kGraniteFactors{{
    {"embedding_multiplier", &ModelFactors::embedding_multiplier, 1},
    {"residual_multiplier", &ModelFactors::residual_multiplier, 1},
    {"attention_multiplier", &ModelFactors::attention_multiplier, 1},
    {"logits_scaling", &ModelFactors::logits_scaling, 1},
}};
constexpr std::array<FamilyFactor, 1> kCohereFactors{{{"logit_scale", &ModelFactors::logit_scale, 0.0625}}};
constexpr std::array<FamilyFactor, 1> kGemma3Factors{
    {{"rope_local_base_freq", &ModelFactors::rope_local_base_freq, 10000}}};

}  // namespace

std::span<const FamilyFactor> factors_of(Family family) {
  switch (family) {
    case Family::granite:
      return kGraniteFactors;
    case Family::cohere:
    case Family::cohere2:
      return kCohereFactors;
    case Family::gemma3_text:
      return kGemma3Factors;
    default:
      return {};
  }
}

}  // namespace qlp
