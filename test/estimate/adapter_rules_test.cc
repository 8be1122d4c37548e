#include "estimate/adapter_rules.h"

#include <doctest/doctest.h>

#include "estimate/small_jobs.h"

using namespace qlp;

namespace {

/// The codes of what is refused.
std::vector<std::string> codes(const JobSpec& job, const ShardingPlan& plan = Single{}) {
  std::vector<std::string> out;
  for (const Diagnostic& refusal : check_adapter(job, plan, StackProfile(job.stack))) out.push_back(refusal.code);
  return out;
}

JobSpec with(AdapterSpec adapter, Family family = Family::llama) {
  JobSpec job = small_job(small_model(family));
  job.adapter = std::move(adapter);
  return job;
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_CASE("estimate/adapter_rules: plain LoRA is taken everywhere") {
  CHECK(codes(with(small_lora())).empty());
  CHECK(codes(with(small_lora()), Fsdp1{}).empty());
  CHECK(codes(small_job(small_model(Family::llama))).empty());
}

TEST_CASE("estimate/adapter_rules: options that came with later versions of PEFT") {
  JobSpec job = with({.target_modules = {"q_proj"}, .exclude_modules = {"v_proj"}, .lora_bias = true});
  CHECK(codes(job).empty());
  job.stack.peft = {0, 13, 2};
  CHECK(codes(job) == Codes{"not-in-peft", "not-in-peft"});
  job = with({.target_modules = {"q_proj"}, .trainable_token_indices = {1}});
  CHECK(codes(job).empty());
  job.stack.peft = {0, 14, 0};
  CHECK(codes(job) == Codes{"not-in-peft"});
}

TEST_CASE("estimate/adapter_rules: what lies beside the embedding") {
  for (const JobSpec& job : {with({.target_modules = {"q_proj", "embed_tokens"}}),
                             with({.target_modules = {"q_proj"}, .trainable_token_indices = {1}})}) {
    for (const ShardingPlan& plan :
         {ShardingPlan{Ddp{}}, ShardingPlan{Fsdp1{}}, ShardingPlan{Fsdp2{}}, ShardingPlan{Zero{.stage = 3}}})
      CHECK(codes(job, plan).empty());
    JobSpec shared = job;
    shared.cluster.mesh.tp = 2;
    CHECK(codes(shared, Single{}).size() == 1);
  }
  JobSpec tied = with({.target_modules = {"q_proj"}, .trainable_token_indices = {1}});
  tied.model.tie_word_embeddings = true;
  CHECK(codes(tied, Fsdp2{}) == Codes{"tokens-shared"});
  JobSpec scaled = with({.target_modules = {"q_proj", "embed_tokens"}});
  scaled.model.family = Family::gemma3_text;
  CHECK(codes(scaled).empty());
  scaled.stack.peft = {0, 17, 1};
  CHECK(codes(scaled).size() == 1);
}

// Seen with torch 2.8.0 and 2.14.1.
TEST_CASE("estimate/adapter_rules: trained biases beside frozen weights") {
  const AdapterSpec all{.target_modules = {"q_proj"}, .bias = AdapterBias::all};
  for (const bool original : {false, true}) {
    CHECK(codes(with(all), Fsdp1{.use_orig_params = original}).empty());  // there are none
    CHECK(codes(with(all, Family::qwen2), Fsdp1{.use_orig_params = original}).empty() == original);
  }
  CHECK(codes(with(all, Family::qwen2), Zero{.stage = 3}).empty());
}

TEST_CASE("estimate/adapter_rules: tokens that PEFT does not train") {
  CHECK(codes(with({.target_modules = {"q_proj"}, .trainable_token_indices = {130}})).empty());
  CHECK(codes(with({.target_modules = {"q_proj"}, .trainable_token_indices = {131}})) ==
        Codes{"token-out-of-vocabulary"});
  CHECK(codes(with(
            {.target_modules = {"q_proj"}, .modules_to_save = {"embed_tokens"}, .trainable_token_indices = {1}})) ==
        Codes{"tokens-of-copy"});
}

TEST_CASE("estimate/adapter_rules: bare parameters are experts and routers") {
  const AdapterSpec experts{.target_modules = {"q_proj"}, .target_parameters = {"experts.down_proj"}};
  CHECK(codes(with(experts)) == Codes{"bare-parameters"});
  CHECK(codes(with(experts, Family::qwen3_moe)).empty());
  CHECK(codes(with({.target_modules = {"q_proj"}, .target_parameters = {"q_proj.weight"}}, Family::qwen3_moe)) ==
        Codes{"bare-parameters"});
}
