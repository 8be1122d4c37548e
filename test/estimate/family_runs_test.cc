// Families as the real libraries ran them on a null GPU: torch 2.8.0, transformers 4.57.1, peft 0.18.0 and
// torch 2.14.1, transformers 5.24.0, peft 0.21.2, both with bitsandbytes 0.50.2. Shapes of real models with few layers
// and a vocabulary of 4096, three steps of adamw_torch; peaks of requested bytes from the first forward pass on.
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "estimate/requested_peak.h"
#include "estimate/small_jobs.h"

namespace qlp {
namespace {

struct Width {
  std::int64_t hidden, intermediate, layers;
};
struct Heads {
  std::int64_t query, key_value, dim;
};

ModelSpec shaped(Family family, const Width& width, const Heads& heads, bool tied) {
  ModelSpec spec;
  spec.family = family;
  spec.hidden_size = width.hidden, spec.intermediate_size = width.intermediate;
  spec.num_hidden_layers = width.layers, spec.vocab_size = 4096;
  spec.num_attention_heads = heads.query, spec.num_key_value_heads = heads.key_value, spec.head_dim = heads.dim;
  spec.max_position_embeddings = 32768;
  spec.tie_word_embeddings = tied;
  spec.checkpoint_dtype = DType::bfloat16;
  return spec;
}

ModelSpec model(Family family) {
  ModelSpec spec;
  switch (family) {
    case Family::gemma3_text:
      spec = shaped(family, {1152, 6912, 7}, {4, 1, 256}, true);
      spec.sliding_window = 512, spec.sliding_window_pattern = 6;
      break;
    case Family::granite:
      spec = shaped(family, {2048, 8192, 4}, {32, 8, 64}, true);
      break;
    case Family::smollm3:
      spec = shaped(family, {2048, 11008, 5}, {16, 4, 128}, true);
      spec.no_rope_layer_interval = 4;
      break;
    case Family::olmo3:
      spec = shaped(family, {2048, 5504, 5}, {16, 16, 128}, false);
      spec.sliding_window = 512, spec.sliding_window_pattern = 4;
      break;
    case Family::ministral:
      spec = shaped(family, {2048, 6144, 4}, {16, 4, 128}, false);
      spec.sliding_window = 512;
      break;
    case Family::gemma:
      spec = shaped(family, {2048, 8192, 3}, {8, 1, 256}, true);
      break;
    case Family::cohere:
      spec = shaped(family, {2048, 5632, 4}, {16, 16, 128}, true);
      break;
    case Family::cohere2:
      spec = shaped(family, {2048, 5632, 5}, {16, 4, 128}, true);
      spec.sliding_window = 512, spec.sliding_window_pattern = 4;
      break;
    default:  // GLM-4, with sandwich norms or without
      spec = shaped(family, {4096, 13696, 3}, {32, 2, 128}, false);
      spec.qkv_bias = true, spec.partial_rotary_factor = 0.5;
  }
  return spec;
}

JobSpec job_of(Family family, const std::string& what) {
  JobSpec job = small_job(model(family));
  job.training.attention = what == "eager" ? Attention::eager : Attention::sdpa;
  job.training.bf16 = what != "full" && what != "eager";
  job.training.micro_batch_size = what == "lora" || what == "eager" ? 1 : 2;
  job.training.seq_len = what == "eager" ? 384 : 768;
  job.training.optimizer = named_optimizer("adamw_torch");
  job.training.num_steps = 3;
  job.loading = Loading::gpu;
  if (what.ends_with("ckpt")) job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  if (what != "full") job.adapter = AdapterSpec{.r = 16, .lora_alpha = 32, .lora_dropout = 0.05, .all_linear = true};
  if (what == "qlora-ckpt")
    job.quantization = QuantizationSpec{.double_quant = true, .quant_storage = DType::uint8, .prepare_kbit = true};
  return job;
}

struct Row {
  Family family;
  std::string what;
  std::uint64_t in_4, in_5;  ///< by the version of transformers; 0: not run
};

}  // namespace

TEST_CASE("estimate/family_runs: peaks of training are those of the libraries") {
  for (const auto& [family, what, in_4, in_5] : {Row{Family::gemma3_text, "full", 2487974200, 2487975316},
                                                 {Family::gemma3_text, "qlora-ckpt", 563506766, 563507802},
                                                 {Family::gemma3_text, "lora", 1112458542, 1112459658},
                                                 {Family::gemma3_text, "eager", 858145558, 858146578},
                                                 {Family::granite, "full", 2533769362, 2533769486},
                                                 {Family::granite, "lora", 0, 1050258800},
                                                 {Family::granite, "lora-ckpt", 962107576, 962107700},
                                                 {Family::granite, "qlora-ckpt", 706186280, 706186404},
                                                 {Family::smollm3, "full", 4007051538, 4007051790},
                                                 {Family::smollm3, "lora", 0, 1588799112},
                                                 {Family::smollm3, "qlora-ckpt", 886241028, 886241280},
                                                 {Family::smollm3, "eager", 1381034772, 1377102864},
                                                 {Family::glm, "full", 6471364754, 6471364878},
                                                 {Family::glm, "lora", 0, 2015109464},
                                                 {Family::glm4, "full", 6471561362, 6471561486},
                                                 {Family::glm4, "lora", 0, 2078088536},
                                                 {Family::glm4, "qlora-ckpt", 1320781056, 1320781180},
                                                 {Family::glm4, "eager", 1882287252, 1881107728},
                                                 {Family::olmo3, "full", 2784598582, 2784599154},
                                                 {Family::olmo3, "lora", 0, 1172705384},
                                                 {Family::olmo3, "lora-ckpt", 943350304, 943350828},
                                                 {Family::olmo3, "eager", 0, 1007626768},
                                                 {Family::ministral, "full", 2114339090, 2114339342},
                                                 {Family::ministral, "lora", 0, 912698960},
                                                 {Family::gemma, "full", 1894105618, 0},
                                                 {Family::gemma, "lora", 804509276, 0},
                                                 {Family::gemma, "qlora-ckpt", 638710476, 0},
                                                 {Family::gemma, "eager", 666907668, 0},
                                                 {Family::cohere, "full", 2156216594, 0},
                                                 {Family::cohere, "lora", 0, 889626224},
                                                 {Family::cohere, "qlora-ckpt", 602280104, 0},
                                                 {Family::cohere, "eager", 783476500, 783476752},
                                                 {Family::cohere2, "full", 2355462418, 0},
                                                 {Family::cohere2, "lora", 0, 1028094568},
                                                 {Family::cohere2, "qlora-ckpt", 632627564, 0}}) {
    CAPTURE(static_cast<int>(family));
    CAPTURE(what);
    JobSpec job = job_of(family, what);
    job.stack = kOlder;
    if (in_4) CHECK(test::requested_peak(job) == in_4);
    job.stack = kNewer;
    if (in_5) CHECK(test::requested_peak(job) == in_5);
  }
}

}  // namespace qlp
