#include "model/parameter_count.h"

#include <doctest/doctest.h>

using namespace qlp;

namespace {

struct Shape3 {
  std::int64_t hidden, intermediate, layers;
};
struct Heads {
  std::int64_t query, key_value, dim;
};

ModelSpec model(Family family, Shape3 shape, Heads heads, std::int64_t vocab, bool tied) {
  ModelSpec spec;
  spec.family = family;
  spec.hidden_size = shape.hidden;
  spec.intermediate_size = shape.intermediate;
  spec.num_hidden_layers = shape.layers;
  spec.num_attention_heads = heads.query;
  spec.num_key_value_heads = heads.key_value;
  spec.head_dim = heads.dim;
  spec.vocab_size = vocab;
  spec.tie_word_embeddings = tied;
  spec.qkv_bias = family == Family::qwen2;
  return spec;
}

}  // namespace

TEST_CASE("model/parameter_count: equals published counts to the last digit") {
  // intel/ipex-llm docker/llm/finetune/lora/cpu/docker/README.md: 6742609920 with 4194304 of LoRA
  CHECK(parameter_count(model(Family::llama, {4096, 11008, 32}, {32, 32, 128}, 32000, false)) == 6738415616);
  // huggingface/peft docs/source/quicktour.md: Llama-3.2-1B, 1236338688 with 524288 of LoRA
  CHECK(parameter_count(model(Family::llama, {2048, 8192, 16}, {32, 8, 64}, 128256, true)) == 1235814400);
  // huggingface/peft method_comparison/MetaMathQA: Llama-3.2-3B, full fine-tuning
  CHECK(parameter_count(model(Family::llama, {3072, 8192, 28}, {24, 8, 128}, 128256, true)) == 3212749824);
  // huggingface/peft examples/sequence_classification/LoRA-torchao-8bit.ipynb: Gemma-2-2B
  CHECK(parameter_count(model(Family::gemma2, {2304, 9216, 26}, {8, 4, 256}, 256000, true)) == 2614341888);
  // google/gemma-2-9b model.safetensors.index.json: total_size 18483411968 in bfloat16
  CHECK(parameter_count(model(Family::gemma2, {3584, 14336, 42}, {16, 8, 256}, 256000, true)) == 9241705984);
}

TEST_CASE("model/parameter_count: the other families, as their module lists add up") {
  CHECK(parameter_count(model(Family::llama, {16384, 53248, 126}, {128, 8, 128}, 128256, false)) == 405853388800);
  CHECK(parameter_count(model(Family::mistral, {4096, 14336, 32}, {32, 8, 128}, 32768, false)) == 7248023552);
  CHECK(parameter_count(model(Family::qwen2, {3584, 18944, 28}, {28, 4, 128}, 152064, false)) == 7615616512);
  CHECK(parameter_count(model(Family::qwen3, {1024, 3072, 28}, {16, 8, 128}, 151936, true)) == 596049920);
  CHECK(parameter_count(model(Family::qwen3, {4096, 12288, 36}, {32, 8, 128}, 151936, false)) == 8190735360);
  CHECK(parameter_count(model(Family::olmo2, {4096, 11008, 32}, {32, 32, 128}, 100352, false)) == 7298617344);
  CHECK(parameter_count(model(Family::phi3, {3072, 8192, 32}, {32, 32, 96}, 32064, false)) == 3821079552);
}

TEST_CASE("model/parameter_count: biases") {
  auto spec = model(Family::llama, {8, 16, 1}, {2, 1, 4}, 10, true);
  const auto without = parameter_count(spec);
  spec.qkv_bias = true;
  CHECK(parameter_count(spec) == without + 8 + 4 + 4);
  spec.attention_bias = true;
  CHECK(parameter_count(spec) == without + 16 + 8);
  spec.mlp_bias = true;
  CHECK(parameter_count(spec) == without + 24 + 16 + 16 + 8);
}
