// What a parameter is for; plans decide by role and trainability what is sharded.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace qlp {

enum class ParamRole : std::uint8_t {
  base_weight,
  lora_a,
  lora_b,
  dora_magnitude,
  norm,
  embedding,
  lm_head,
  bias,
  router,
  modules_to_save,
  lora_bias,
  trainable_tokens,
  sink,
};

inline constexpr std::array<std::string_view, 13> kParamRoleNames{
    "base_weight", "lora_a",          "lora_b",    "dora_magnitude",   "norm", "embedding", "lm_head", "bias",
    "router",      "modules_to_save", "lora_bias", "trainable_tokens", "sink"};

constexpr std::string_view name_of(ParamRole role) { return kParamRoleNames[static_cast<std::size_t>(role)]; }

}  // namespace qlp
