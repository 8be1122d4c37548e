#include "checkpoint/model_config.h"

#include <doctest/doctest.h>

#include "config/json_parser.h"
#include "config/model_catalogue.h"
#include "config/model_reader.h"

using namespace qlp;

namespace {

NodePtr parsed(std::string_view text) { return *parse_json(text, "config.json"); }

}  // namespace

TEST_CASE("checkpoint/model_config: a config made from the shapes is read back as the same shapes") {
  for (const auto name : model_names()) {
    CAPTURE(name);
    const ModelSpec spec = *catalogue_spec(*find_model(name));
    const auto config = config_of(spec);
    const auto again = model_from_config(*parsed(json_text(*config)), spec.name);
    REQUIRE(again);
    CHECK(again->model == spec);
  }
}

TEST_CASE("checkpoint/model_config: JSON is written as it was read") {
  const std::string text =
      "{\n  \"a\": [1, 1e-05, Infinity],\n  \"b\": {\n    \"c\": \"x\\n\\\"\"\n  },\n  \"d\": null,\n  \"e\": {}\n}\n";
  CHECK(json_text(*parsed(text)) == text);
}

TEST_CASE("checkpoint/model_config: layers are cut where they are counted and listed") {
  const auto cut =
      with_layers(*parsed(R"({"num_hidden_layers": 3, "layer_types": ["a", "b", "c"], "other": [1, 2]})"), 2);
  REQUIRE(cut);
  CHECK(json_text(**cut) ==
        json_text(*parsed(R"({"num_hidden_layers": 2, "layer_types": ["a", "b"], "other": [1, 2]})")));
  const auto inner = with_layers(*parsed(R"({"text_config": {"n_layer": 8}, "vision_config": {"n_layer": 9}})"), 1);
  REQUIRE(inner);
  CHECK(json_text(**inner) ==
        json_text(*parsed(R"({"text_config": {"n_layer": 1}, "vision_config": {"n_layer": 9}})")));
  CHECK(with_layers(*parsed(R"({"num_hidden_layers": 3})"), 4).error().front().code == "out-of-range");
  CHECK(with_layers(*parsed("{}"), 4).error().front().code == "missing-key");
}

TEST_CASE("checkpoint/model_config: what goes to disk has the weights' dtype and format, and no code to fetch") {
  const auto config = parsed(R"({"auto_map": {}, "dtype": "float32", "quantization_config": {"bits": 8}, "x": 1})");
  REQUIRE(quantization_of(*config));
  CHECK(json_text(**as_stored(*config, DType::float16, "")) ==
        json_text(*parsed(R"({"x": 1, "torch_dtype": "float16"})")));
  CHECK(json_text(**as_stored(*config, DType::float16, R"({"bits": 4})")) ==
        json_text(*parsed(R"({"x": 1, "torch_dtype": "float16", "quantization_config": {"bits": 4}})")));
}

TEST_CASE("checkpoint/model_config: numbers are found in the language model, and first in lists") {
  const auto config = parsed(R"({"eos_token_id": [7, 8], "text_config": {"vocab_size": 99}})");
  CHECK(config_integer(*config, "eos_token_id") == 7);
  CHECK(config_integer(*config, "vocab_size") == 99);
  CHECK_FALSE(config_integer(*config, "pad_token_id"));
}
