// The families whose layers are written down in model/; named after `model_type` in config.json.
#pragma once

#include <cstdint>

namespace qlp {

enum class Family : std::uint8_t {
  llama,
  mistral,
  qwen2,
  qwen3,
  olmo2,
  phi3,
  gemma2,
  mixtral,
  qwen3_moe,
  gemma3_text,
  granite,
  smollm3,
  glm,
  glm4,
  olmo3,
  ministral,
  gemma,
  cohere,
  cohere2,
  olmoe,
  qwen2_moe,
  gpt_oss,
};

}  // namespace qlp
