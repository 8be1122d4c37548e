#include "config/family_table.h"

#include <algorithm>
#include <array>

namespace qlp {
namespace {

/// What is special about a family that is asked for often.
struct Reason {
  std::string_view model_type, reason;
};
constexpr auto kReasons = std::to_array<Reason>({
    {"gemma3",
     "it has a vision tower, which is not planned yet; its text_config by itself is a model of the family gemma3_text"},
    {"mistral3", "it has a vision tower, which is not planned yet; its text_config by itself is a model of its own"},
    {"starcoder2", "its layers drop out what they add and attend to, whose masks are not planned yet"},
});
constexpr auto kExperts = std::to_array<std::string_view>(
    {"deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "kimi_k2", "minimax", "minimax_m2", "glm4_moe",
     "glm_moe_dsa", "phimoe", "dbrx", "llama4_text", "granitemoe", "jetmoe", "ernie4_5_moe"});
constexpr auto kOtherInputs =
    std::to_array<std::string_view>({"gemma3n", "gemma4", "llama4", "mllama", "llava", "qwen2_vl", "qwen2_5_vl",
                                     "qwen3_vl", "qwen3_vl_moe", "kimi_k25", "pixtral", "phi4_multimodal"});
constexpr std::array<std::string_view, 10> kHybrids{"qwen3_next", "qwen3_5", "qwen3_5_moe", "nemotron_h", "jamba",
                                                    "bamba",      "mamba",   "mamba2",      "falcon_h1",  "zamba2"};

template <std::size_t N>
bool holds(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string_view why_not_supported(std::string_view model_type) {
  const auto known = std::ranges::find(kReasons, model_type, &Reason::model_type);
  if (known != kReasons.end()) return known->reason;
  if (holds(kExperts, model_type))
    return "of mixtures of experts only Mixtral's, Qwen 2's, Qwen 3's, OLMoE's and GPT-OSS's are planned yet";
  if (holds(kOtherInputs, model_type)) return "it takes more than text, and only text models are planned yet";
  if (holds(kHybrids, model_type)) return "it has layers other than attention, which are not planned yet";
  return "the layers of this family are not written down here yet";
}

}  // namespace qlp
