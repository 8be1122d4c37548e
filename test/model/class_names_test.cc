#include "model/class_names.h"

#include <doctest/doctest.h>

using namespace qlp;

TEST_CASE("model/class_names: a family's classes begin alike") {
  CHECK(class_name(Family::gemma3_text, "ForCausalLM") == "Gemma3ForCausalLM");
  CHECK(class_name(Family::gpt_oss, "ForCausalLM") == "GptOssForCausalLM");
}

TEST_CASE("model/class_names: layers, attention and dense MLPs are what can be a unit") {
  CHECK(kind_of_class(Family::llama, "LlamaDecoderLayer") == ModuleKind::decoder_layer);
  CHECK(kind_of_class(Family::qwen3, "Qwen3Attention") == ModuleKind::attention);
  CHECK(kind_of_class(Family::gemma3_text, "Gemma3MLP") == ModuleKind::mlp);
  CHECK(kind_of_class(Family::qwen3_moe, "Qwen3MoeAttention") == ModuleKind::attention);
  CHECK_FALSE(kind_of_class(Family::qwen3_moe, "Qwen3MoeMLP"));  // of an expert
  CHECK_FALSE(kind_of_class(Family::llama, "MistralMLP"));
  CHECK_FALSE(kind_of_class(Family::llama, "Linear"));
}
