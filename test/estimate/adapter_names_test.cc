#include "estimate/adapter_names.h"

#include <doctest/doctest.h>

#include "estimate/small_jobs.h"

using namespace qlp;

namespace {

Diagnostics warnings(Family family, const AdapterSpec& adapter) {
  JobSpec job = small_job(small_model(family));
  job.adapter = adapter;
  return adapter_warnings(job);
}

}  // namespace

TEST_CASE("estimate/adapter_names: names that are there say nothing") {
  CHECK(warnings(Family::llama, small_lora()).empty());
  CHECK(warnings(Family::llama, {.target_modules = {"q_proj", "self_attn.v_proj", "layers.1.mlp.up_proj"},
                                 .modules_to_save = {"lm_head", "embed_tokens"},
                                 .rank_pattern = {{"q_proj", 4}, {"layers.*v_proj", 2}}})
            .empty());
  CHECK(warnings(Family::mixtral, {.target_modules = {"q_proj", "gate", "w1", "w2", "w3"}}).empty());
  CHECK(warnings(Family::qwen3_moe, {.target_modules = {"q_proj", "gate_proj", "up_proj", "down_proj"}}).empty());
}

TEST_CASE("estimate/adapter_names: split names on a model whose projections are fused") {
  const Diagnostics told = warnings(Family::phi3, {.target_modules = {"q_proj", "o_proj", "gate_proj", "down_proj"}});
  REQUIRE(told.size() == 1);
  CHECK(told[0].severity == Severity::warning);
  CHECK(told[0].key_path == "adapter.target_modules");
  CHECK(told[0].message.starts_with("q_proj, gate_proj match no linear layer"));
  CHECK(told[0].hint == "linear layers are o_proj, qkv_proj, gate_up_proj, down_proj, lm_head");
}

TEST_CASE("estimate/adapter_names: saved modules and ranks that nothing takes") {
  const Diagnostics told = warnings(
      Family::llama,
      {.target_modules = {"q_proj"}, .modules_to_save = {"score"}, .rank_pattern = {{"q_proj", 4}, {"v_proj", 2}}});
  REQUIRE(told.size() == 2);
  CHECK(told[0].key_path == "adapter.modules_to_save");
  CHECK(told[1].key_path == "adapter.rank_pattern");
  CHECK(told[1].message.starts_with("v_proj matches no layer with an adapter"));
}

TEST_CASE("estimate/adapter_names: layers that are not there") {
  const Diagnostics told =
      warnings(Family::llama, {.target_modules = {"q_proj"}, .layers_to_transform = {0, 1, 40, 99}});
  REQUIRE(told.size() == 1);
  CHECK(told[0].key_path == "adapter.layers_to_transform");
  CHECK(told[0].message.starts_with("40, 99 match no layer"));
}

TEST_CASE("estimate/adapter_names: where nothing at all matches, every plan refuses it") {
  CHECK(warnings(Family::llama, {.target_modules = {"query", "value"}}).empty());
}
