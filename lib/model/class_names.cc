#include "model/class_names.h"

#include <array>
#include <cstddef>

namespace qlp {
namespace {

struct FamilyClasses {
  Family family;
  std::string_view prefix;
  bool dense = true;  ///< one MLP a layer: in mixtures an expert has the name, or nothing
};

// clang-format off
constexpr std::array<FamilyClasses, 22> kClasses{{  // in the order of Family
    {Family::llama, "Llama"},
    {Family::mistral, "Mistral"},
    {Family::qwen2, "Qwen2"},
    {Family::qwen3, "Qwen3"},
    {Family::olmo2, "Olmo2"},
    {Family::phi3, "Phi3"},
    {Family::gemma2, "Gemma2"},
    {Family::mixtral, "Mixtral", false},
    {Family::qwen3_moe, "Qwen3Moe", false},
    {Family::gemma3_text, "Gemma3"},
    {Family::granite, "Granite"},
    {Family::smollm3, "SmolLM3"},
    {Family::glm, "Glm"},
    {Family::glm4, "Glm4"},
    {Family::olmo3, "Olmo3"},
    {Family::ministral, "Ministral"},
    {Family::gemma, "Gemma"},
    {Family::cohere, "Cohere"},
    {Family::cohere2, "Cohere2"},
    {Family::olmoe, "Olmoe", false},
    {Family::qwen2_moe, "Qwen2Moe", false},
    {Family::gpt_oss, "GptOss", false},
}};
// clang-format on

const FamilyClasses& classes_of(Family family) { return kClasses.at(static_cast<std::size_t>(family)); }

}  // namespace

std::string class_name(Family family, std::string_view what) {
  return std::string(classes_of(family).prefix) + std::string(what);
}

std::optional<ModuleKind> kind_of_class(Family family, std::string_view name) {
  if (name == class_name(family, "DecoderLayer")) return ModuleKind::decoder_layer;
  if (name == class_name(family, "Attention")) return ModuleKind::attention;
  if (name == class_name(family, "MLP") && classes_of(family).dense) return ModuleKind::mlp;
  return std::nullopt;
}

}  // namespace qlp
