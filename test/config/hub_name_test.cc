#include "config/hub_name.h"

#include <doctest/doctest.h>

namespace qlp {
namespace {

std::string_view model(std::string_view name) {
  const auto* found = model_of_hub(name);
  return found ? found->name : "";
}

}  // namespace

TEST_CASE("config/hub_name: words of tuning change no shape") {
  CHECK(model("meta-llama/Meta-Llama-3-8B-Instruct") == "llama-3-8b");
  CHECK(model("NousResearch/Llama-2-7b-chat-hf") == "llama-2-7b");
  CHECK(model("Qwen/Qwen3-4B-Instruct-2507") == "qwen3-4b");
  CHECK(model("unsloth/gemma-2-9b-it") == "gemma-2-9b");
  CHECK(model("mistralai/Mixtral-8x7B-Instruct-v0.1") == "mixtral-8x7b");
  CHECK(model("microsoft/Phi-3.5-mini-instruct") == "phi-3.5-mini");
  CHECK(model("google/gemma-3-1b-it") == "gemma-3-1b");
  CHECK(model("zai-org/GLM-4-9B-0414") == "glm-4-9b-0414");
}

TEST_CASE("config/hub_name: releases that kept the shapes of another") {
  CHECK(model("meta-llama/Llama-3.3-70B-Instruct") == "llama-3.1-70b");
  CHECK(model("allenai/OLMo-2-1124-7B-Instruct") == "olmo2-7b");
  CHECK(model("allenai/Olmo-3-1025-7B") == "olmo3-7b");
  CHECK(model("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B") == "qwen2.5-14b");
  CHECK(model("mistralai/Mistral-Nemo-Instruct-2407") == "mistral-nemo-12b");
}

TEST_CASE("config/hub_name: a word that may change the shapes is not passed over") {
  CHECK(model("mistralai/Mistral-7B-Instruct-v0.3") == "mistral-7b-v0.3");
  CHECK(model("mistralai/Mistral-7B-Instruct-v0.2") == "");
  CHECK(model("TheBloke/Llama-2-7B-GPTQ") == "");
  CHECK(model("meta-llama/Llama-3.1-9B") == "");
  CHECK(model("google/gemma-3-4b-it") == "");  // which has a vision tower
  CHECK(model("THUDM/glm-4-9b") == "");        // another family
  CHECK(model("") == "");
  CHECK(model("///") == "");
}

}  // namespace qlp
