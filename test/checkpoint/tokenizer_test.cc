#include "checkpoint/tokenizer.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace qlp;

namespace {

struct Parsed {
  nlohmann::json tokenizer, config;
  const nlohmann::json& vocab() const { return tokenizer["model"]["vocab"]; }
};

Parsed made(std::int64_t size, const SpecialIds& ids) {
  const auto files = minimal_tokenizer(size, ids, 512);
  REQUIRE(files.size() == 2);
  CHECK(files[0].name == "tokenizer.json");
  CHECK(files[1].name == "tokenizer_config.json");
  return {nlohmann::json::parse(files[0].text), nlohmann::json::parse(files[1].text)};
}

}  // namespace

TEST_CASE("checkpoint/tokenizer: every id of the vocabulary is a token, special ones where the config has them") {
  const auto t = made(1000, {.bos = 5, .eos = 7, .pad = 999});
  CHECK(t.vocab().size() == 1000);
  CHECK(t.vocab()["<|eos|>"] == 7);
  CHECK(t.vocab()["<|bos|>"] == 5);
  CHECK(t.vocab()["<|pad|>"] == 999);
  CHECK(t.vocab().contains("A"));
  CHECK(t.vocab().contains("\u0120"));  // a blank
  CHECK(t.config["eos_token"] == "<|eos|>");
  CHECK(t.config["model_max_length"] == 512);
  CHECK(t.config["model_input_names"] == nlohmann::json::array({"input_ids", "attention_mask"}));
  CHECK(t.tokenizer["added_tokens"].size() == 3);
}

TEST_CASE("checkpoint/tokenizer: eos and pad are always there; one that is both is one token") {
  const auto none = made(300, {});
  CHECK(none.vocab()["<|eos|>"] == 299);
  CHECK(none.vocab()["<|pad|>"] == 298);
  CHECK(none.config["bos_token"] == "<|eos|>");
  const auto same = made(300, {.bos = 1, .eos = 2, .pad = 2});
  CHECK(same.config["pad_token"] == "<|eos|>");
  const auto outside = made(300, {.bos = 1, .eos = 2, .pad = 4000});
  CHECK(outside.vocab()["<|pad|>"] == 299);
}

TEST_CASE("checkpoint/tokenizer: a vocabulary without room for all bytes has an unknown token") {
  const auto t = made(32, {.bos = 0, .eos = 1, .pad = 2});
  CHECK(t.vocab().size() == 32);
  CHECK(t.tokenizer["model"]["unk_token"] == "<|unk|>");
  CHECK(t.config["unk_token"] == "<|unk|>");
  CHECK(made(260, {}).tokenizer["model"]["unk_token"].is_null());
}
