#include "config/family_table.h"

#include <algorithm>

namespace qlp {
namespace {

constexpr std::array<std::string_view, 18> kExperts{
    "qwen2_moe", "deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "kimi_k2",
    "gpt_oss",   "minimax",     "minimax_m2",  "glm4_moe",     "glm_moe_dsa", "phimoe",
    "dbrx",      "llama4_text", "olmoe",       "granitemoe",   "jetmoe",      "ernie4_5_moe"};
constexpr std::array<std::string_view, 14> kOtherInputs{
    "gemma3",   "gemma3n",    "gemma4",   "llama4",       "mistral3", "mllama",  "llava",
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "kimi_k25", "pixtral", "phi4_multimodal"};
constexpr std::array<std::string_view, 10> kHybrids{"qwen3_next", "qwen3_5", "qwen3_5_moe", "nemotron_h", "jamba",
                                                    "bamba",      "mamba",   "mamba2",      "falcon_h1",  "zamba2"};

template <std::size_t N>
bool holds(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string_view why_not_supported(std::string_view model_type) {
  if (holds(kExperts, model_type)) return "of mixtures of experts only Mixtral's and Qwen 3's are planned yet";
  if (holds(kOtherInputs, model_type)) return "it takes more than text, and only text models are planned yet";
  if (holds(kHybrids, model_type)) return "it has layers other than attention, which are not planned yet";
  return "the layers of this family are not written down here yet";
}

}  // namespace qlp
