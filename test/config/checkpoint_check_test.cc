#include "config/checkpoint_check.h"

#include <doctest/doctest.h>

#include "config/memory_files.h"
#include "model/parameter_count.h"

using namespace qlp;
using qlp::test::MemoryFiles;

namespace {

ModelSpec tiny(bool tied) {
  ModelSpec spec;
  spec.hidden_size = 8;
  spec.intermediate_size = 16;
  spec.num_hidden_layers = 1;
  spec.num_attention_heads = 2;
  spec.num_key_value_heads = 1;
  spec.head_dim = 4;
  spec.vocab_size = 10;
  spec.tie_word_embeddings = tied;
  spec.checkpoint_dtype = DType::bfloat16;
  return spec;
}

std::string safetensors(const std::string& header) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xFFU);
  return file + header + "data";
}

/// A header with one tensor of `elements` and a buffer that is no parameter.
std::string shard(std::uint64_t elements) {
  return safetensors(R"({"__metadata__": {"format": "pt"}, "w": {"dtype": "BF16", "shape": [)" +
                     std::to_string(elements) +
                     R"(, 1], "data_offsets": [0, 4]}, "a.rotary_emb.inv_freq": {"dtype": "F32", "shape": [2]}})");
}

Diagnostics check(const ModelSpec& spec, std::map<std::string, std::string> files) {
  return check_checkpoint("m", spec, false, MemoryFiles(std::move(files)));
}

}  // namespace

TEST_CASE("config/checkpoint_check: headers that hold what the shapes say") {
  const auto spec = tiny(false);
  const auto n = parameter_count(spec);
  const auto found = check(spec, {{"m/model.safetensors", shard(n)}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::note);
  const auto two = check(spec, {{"m/a.safetensors", shard(n - 5)}, {"m/b.safetensors", shard(5)}});
  CHECK(two[0].severity == Severity::note);
}

TEST_CASE("config/checkpoint_check: a second copy of a tied embedding is no surprise, anything else is") {
  CHECK(check(tiny(true), {{"m/a.safetensors", shard(parameter_count(tiny(true)) + 80)}})[0].severity ==
        Severity::note);
  for (const bool tied : {true, false}) {
    const auto found = check(tiny(tied), {{"m/a.safetensors", shard(1000)}});
    REQUIRE(found.size() == 1);
    CHECK(found[0].severity == Severity::warning);
    CHECK(found[0].code == "parameter-count");
    CHECK(found[0].message.find("1,000") != std::string::npos);
  }
}

TEST_CASE("config/checkpoint_check: the index serves where shards are missing") {
  const auto spec = tiny(false);
  const auto index = [&](std::uint64_t bytes) {
    return R"({"metadata": {"total_size": )" + std::to_string(bytes) +
           R"(}, "weight_map": {"w": "a.safetensors", "l.rotary_emb.inv_freq": "a.safetensors"}})";
  };
  const std::string name = "m/model.safetensors.index.json";
  const auto n = parameter_count(spec);
  CHECK(check(spec, {{name, index(2 * (n + 2))}})[0].severity == Severity::note);
  CHECK(check(spec, {{name, index(2 * n + 400)}})[0].severity == Severity::warning);
  CHECK(check(spec, {{name, index(1)}, {"m/a.safetensors", shard(n)}})[0].severity == Severity::note);
  CHECK(check(spec, {{name, "{"}})[0].code == "checkpoint-index");
}

TEST_CASE("config/checkpoint_check: nothing to say, or files that are not what they are called") {
  CHECK(check(tiny(false), {{"m/config.json", "{}"}}).empty());
  CHECK(check_checkpoint("m", tiny(false), true, MemoryFiles({{"m/a.safetensors", shard(3)}})).empty());
  for (const std::string text : {"", "short", "longer than eight bytes"})
    CHECK(check(tiny(false), {{"m/a.safetensors", text}})[0].code == "safetensors-header");
  CHECK(check(tiny(false), {{"m/a.safetensors", safetensors("{")}})[0].code == "safetensors-header");
  CHECK(check(tiny(false), {{"m/a.safetensors", safetensors(R"({"w": {"shape": [-1]}})")}}).empty());
}
