// What a block of memory is for; the rows of the report's breakdown.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace qlp {

enum class Category : std::uint8_t {
  parameters,
  quant_state,
  adapter,
  gradients,
  optimizer_state,
  gathered_weights,
  activations,
  logits_and_loss,
  gradient_temporaries,
  communication_buffers,
  workspace,
};

inline constexpr std::array<std::string_view, 11> kCategoryNames{
    "parameters",           "quant_state",           "adapter",     "gradients",
    "optimizer_state",      "gathered_weights",      "activations", "logits_and_loss",
    "gradient_temporaries", "communication_buffers", "workspace"};

constexpr std::string_view name_of(Category category) { return kCategoryNames[static_cast<std::size_t>(category)]; }

}  // namespace qlp
