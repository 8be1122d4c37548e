#include "checkpoint/sparse_checkpoint.h"

#include <doctest/doctest.h>

#include "checkpoint/model_config.h"
#include "config/json_parser.h"
#include "config/model_catalogue.h"
#include "config/model_reader.h"

using namespace qlp;

TEST_CASE("checkpoint/sparse_checkpoint: all that from_pretrained reads is there, and the sizes add up") {
  const auto config = *parse_json(R"({"bos_token_id": 1, "eos_token_id": [2, 3], "vocab_size": 300})", "config.json");
  const std::vector<StoredTensor> tensors{{"a", DType::float32, {10}, false, ""}, {"b", DType::int8, {3}, false, ""}};
  const auto checkpoint = sparse_checkpoint(*config, tensors, Bytes{1000});
  CHECK(checkpoint.size == Bytes{43});
  CHECK(count_elements(tensors) == 13);
  REQUIRE(checkpoint.texts.size() == 3);
  CHECK(checkpoint.texts[0].name == "config.json");
  CHECK(checkpoint.texts[1].name == "generation_config.json");
  CHECK(checkpoint.texts[1].text.find("\"eos_token_id\": 2") != std::string::npos);
  CHECK(tokenizer_for(*config).size() == 2);
  CHECK(tokenizer_for(**parse_json("{}", "config.json")).empty());
}

TEST_CASE("checkpoint/sparse_checkpoint: GPTQ's own loaders find the file that they read first") {
  const auto texts = [](const char* method) {
    const std::string json =
        R"({"quantization_config": {"quant_method": ")" + std::string(method) + R"(", "bits": 4}})";
    return sparse_checkpoint(**parse_json(json, "config.json"), {}, Bytes{1000}).texts;
  };
  REQUIRE(texts("gptq").size() == 4);
  CHECK(texts("gptq").back().name == "quantize_config.json");
  CHECK((*find(**parse_json(texts("gptq").back().text, "quantize_config.json"), "bits")).text == "4");
  CHECK(texts("awq").size() == 3);
}
