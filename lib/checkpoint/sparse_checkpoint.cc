#include "checkpoint/sparse_checkpoint.h"

#include <nlohmann/json.hpp>

#include "checkpoint/model_config.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

/// What from_pretrained would make of the config by itself.
std::string generation_config(const TextNode& config) {
  Json out{{"_from_model_config", true}};
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"})
    if (const auto id = config_integer(config, key)) out[key] = *id;
  return out.dump(2) + "\n";
}

/// What GPTQ's own loaders read before config.json, which older ones never look into: save_quantized of auto_gptq 0.7
/// and GPTQModel writes both (BaseQuantizeConfig.save_pretrained).
const TextNode* gptq_config(const TextNode& config) {
  const TextNode* quantization = find(config, "quantization_config");
  const TextNode* method = quantization ? find(*quantization, "quant_method") : nullptr;
  return method && method->text == "gptq" ? quantization : nullptr;
}

}  // namespace

SparseCheckpoint sparse_checkpoint(const TextNode& config, const std::vector<StoredTensor>& tensors, Bytes shard_size) {
  SparseCheckpoint out;
  out.shards = cut_into_shards(tensors, shard_size);
  out.tensors = tensors.size();
  for (const StoredTensor& tensor : tensors) out.size += bytes_of(tensor);
  out.texts = {{"config.json", json_text(config)},
               {"generation_config.json", generation_config(config)},
               {"model.safetensors.index.json", shard_index(out.shards, out.size)}};
  if (const TextNode* gptq = gptq_config(config)) out.texts.push_back({"quantize_config.json", json_text(*gptq)});
  return out;
}

std::vector<TextFile> tokenizer_for(const TextNode& config) {
  constexpr std::int64_t kLeast = 4, kMost = 10'000'000;
  const auto size = config_integer(config, "vocab_size");
  if (!size || *size < kLeast || *size > kMost) return {};
  const SpecialIds ids{.bos = config_integer(config, "bos_token_id"),
                       .eos = config_integer(config, "eos_token_id"),
                       .pad = config_integer(config, "pad_token_id")};
  std::optional<std::int64_t> length;
  for (const char* key : {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"})
    if (!length) length = config_integer(config, key);
  constexpr std::int64_t kUnlimited = 1'000'000'000;
  return minimal_tokenizer(*size, ids, length.value_or(kUnlimited));
}

std::uint64_t count_elements(const std::vector<StoredTensor>& tensors) {
  std::uint64_t count = 0;
  for (const StoredTensor& tensor : tensors) count += static_cast<std::uint64_t>(tensor.shape.numel());
  return count;
}

}  // namespace qlp
