#include "checkpoint/source.h"

#include <doctest/doctest.h>

#include "checkpoint/model_config.h"
#include "config/memory_files.h"

using namespace qlp;

namespace {

const std::string kLlama =
    R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
        "vocab_size": 100, "intermediate_size": 128, "torch_dtype": "float16")";

Result<CheckpointSource> source(const std::string& config, std::optional<std::int64_t> layers = std::nullopt) {
  return read_source("m/config.json", layers, test::MemoryFiles{{{"m/config.json", config}}});
}

}  // namespace

TEST_CASE("checkpoint/source: a file, its folder and a name all give a model") {
  const test::MemoryFiles files{{{"m/config.json", kLlama + "}"}}};
  for (const char* word : {"m", "m/config.json"}) {
    const auto s = read_source(word, std::nullopt, files);
    REQUIRE(s);
    CHECK(s->name == "m");
    CHECK(s->folder == "m");
    CHECK(s->model->num_hidden_layers == 4);
    CHECK(s->dtype == DType::float16);
  }
  const auto known = read_source("Llama-3.1-8B", 2, files);
  REQUIRE(known);
  CHECK(known->model->num_hidden_layers == 2);
  const auto typo = read_source("lama-3.1-8b", std::nullopt, files);
  CHECK(typo.error().front().hint == "did you mean llama-3.1-8b?");
}

TEST_CASE("checkpoint/source: a family that is not written down here is known by its config alone") {
  const auto s = source(R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2})");
  REQUIRE(s);
  CHECK_FALSE(s->model);
  CHECK(s->unknown.front().code == "unsupported-model");
}

TEST_CASE("checkpoint/source: the format of the source is that of its quantization_config") {
  const auto format = [](const std::string& block) {
    return stored_format(*source(kLlama + ", \"quantization_config\": " + block + "}"));
  };
  CHECK(std::holds_alternative<PlainFormat>(*stored_format(*source(kLlama + "}"))));
  const auto gptq = format(R"({"quant_method": "gptq", "bits": 8, "group_size": 32})");
  REQUIRE(gptq);
  CHECK(std::get<GptqFormat>(*gptq).bits == 8);
  CHECK(std::get<GptqFormat>(*gptq).group_size == 32);
  const auto bnb = format(R"({"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})");
  REQUIRE(bnb);
  CHECK(std::get<FourBitWeights>(*bnb).quantization.quant_type == QuantType::nf4);
  CHECK(format(R"({"quant_method": "fp8"})").error().front().code == "not-supported");
  CHECK(format(R"({"quant_method": "gptq", "dynamic": {"a": 1}})").error().front().code == "not-supported");
}
