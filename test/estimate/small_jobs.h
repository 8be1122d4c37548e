// Jobs on models of two small layers, of every family and method, with sizes that divide by nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/job_spec.h"

namespace qlp {

/// The oracle's stacks 2025-10 and 2026-11.
inline constexpr StackVersions kOlder{{2, 8, 0}, {4, 57, 1}, {0, 18, 0}, {1, 15, 0}, {0, 50, 2}};
inline constexpr StackVersions kNewer{{2, 14, 1}, {5, 24, 0}, {0, 21, 2}, {1, 15, 0}, {0, 50, 2}};

/// Mixtures of experts, which only newer stacks run.
inline constexpr Family kMixtures[] = {Family::mixtral, Family::qwen3_moe, Family::olmoe, Family::qwen2_moe,
                                       Family::gpt_oss};
/// Those whose layers and experts ranks share.
inline constexpr Family kSharedMixtures[] = {Family::mixtral, Family::qwen3_moe, Family::olmoe, Family::qwen2_moe};
inline bool is_mixture(Family family) { return std::ranges::find(kMixtures, family) != std::ranges::end(kMixtures); }

inline ModelSpec small_model(Family family) {
  ModelSpec spec;
  spec.family = family;
  spec.hidden_size = 72, spec.intermediate_size = 100, spec.num_hidden_layers = 2, spec.vocab_size = 131;
  spec.num_attention_heads = 4, spec.num_key_value_heads = 2, spec.head_dim = 24, spec.max_position_embeddings = 64;
  spec.qkv_bias = family == Family::qwen2 || family == Family::glm || family == Family::glm4;
  if (is_mixture(family)) {
    spec.experts = ExpertSpec{.num_experts = 6, .num_experts_per_tok = 2, .intermediate_size = 40};
    if (family == Family::qwen3_moe)
      spec.experts->decoder_sparse_step = 2;
    else if (family == Family::qwen2_moe)
      spec.experts->mlp_only_layers = {0}, spec.experts->shared_expert_intermediate_size = 56, spec.qkv_bias = true;
    else
      spec.intermediate_size = 40;
  }
  if (family == Family::gpt_oss)
    spec.qkv_bias = spec.attention_bias = true, spec.sliding_window = 8, spec.sliding_window_pattern = 2;
  if (family == Family::glm || family == Family::glm4) spec.partial_rotary_factor = 0.5;
  if (family == Family::smollm3) spec.no_rope_layer_interval = 2;
  const bool alternates =
      family == Family::gemma2 || family == Family::gemma3_text || family == Family::olmo3 || family == Family::cohere2;
  if (alternates) spec.sliding_window = 8, spec.sliding_window_pattern = 2;
  if (family == Family::ministral) spec.sliding_window = 8, spec.first_sliding_layer = 1;
  if (family == Family::gemma3_text) spec.tie_word_embeddings = true;
  if (family == Family::gemma2) {
    spec.tie_word_embeddings = true;
    spec.attn_logit_softcapping = 50, spec.final_logit_softcapping = 30;
  }
  return spec;
}

/// Llama 3.2 1B cut to `layers`, as cases of the real libraries on a null GPU have it; its tables are untied here.
inline ModelSpec llama_1b(std::int64_t layers) {
  ModelSpec spec;
  spec.hidden_size = 2048, spec.intermediate_size = 8192, spec.num_hidden_layers = layers, spec.vocab_size = 128256;
  spec.num_attention_heads = 32, spec.num_key_value_heads = 8, spec.head_dim = 64;
  spec.max_position_embeddings = 131072;
  return spec;
}

inline JobSpec small_job(const ModelSpec& model) {
  JobSpec job;
  job.model = model;
  job.training.seq_len = 16;
  job.training.bf16 = true;
  const bool refuses_sdpa = model.family == Family::gemma2 || model.family == Family::gpt_oss;  // in transformers 5
  if (refuses_sdpa) job.training.attention = Attention::eager;
  job.cluster.gpu.capacity = Bytes{std::uint64_t{40} << 30};
  return job;
}

inline AdapterSpec small_lora() {
  AdapterSpec adapter;
  adapter.r = 5;
  adapter.all_linear = true;
  return adapter;
}

inline JobSpec small_lora_job(const ModelSpec& model) {
  JobSpec job = small_job(model);
  job.adapter = small_lora();
  return job;
}

inline JobSpec small_qlora_job(const ModelSpec& model, DType storage = DType::bfloat16, bool double_quant = true) {
  JobSpec job = small_lora_job(model);
  job.quantization = QuantizationSpec{.double_quant = double_quant, .quant_storage = storage};
  return job;
}

inline constexpr Family kAllFamilies[] = {
    Family::llama,  Family::mistral,     Family::qwen2,   Family::qwen3,   Family::olmo2,  Family::phi3,
    Family::gemma2, Family::gemma3_text, Family::granite, Family::smollm3, Family::glm,    Family::glm4,
    Family::olmo3,  Family::ministral,   Family::gemma,   Family::cohere,  Family::cohere2};

/// The stacks that the oracle was recorded with, older transformers, and an accelerate that casts whole models.
inline std::vector<StackVersions> sample_stacks() {
  return {
      {{2, 4, 1}, {4, 40, 2}, {0, 11, 1}, {0, 31, 0}, {0, 43, 1}},
      {{2, 4, 1}, {4, 48, 1}, {0, 13, 2}, {1, 0, 1}, {0, 43, 3}},
      {{2, 8, 0}, {4, 57, 1}, {0, 18, 0}, {1, 10, 1}, {0, 46, 1}},
      kOlder,
      kNewer,
  };
}

}  // namespace qlp
