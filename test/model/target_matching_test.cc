#include "model/target_matching.h"

#include <doctest/doctest.h>

#include "model/family_design.h"

using namespace qlp;

namespace {

constexpr const char* kQuery = "model.layers.3.self_attn.q_proj";

}  // namespace

TEST_CASE("model/target_matching: a list is names or their last parts, one text the whole name") {
  CHECK(is_target({.target_modules = {"q_proj"}}, kQuery, false));
  CHECK(is_target({.target_modules = {"self_attn.q_proj"}}, kQuery, false));
  CHECK(is_target({.target_modules = {kQuery}}, kQuery, false));
  CHECK_FALSE(is_target({.target_modules = {"_proj"}}, kQuery, false));
  CHECK(is_target({.target_pattern = R"(.*\.3\..*)"}, kQuery, false));
  CHECK_FALSE(is_target({.target_pattern = "q_proj"}, kQuery, false));
}

TEST_CASE("model/target_matching: all-linear leaves out the head and the embedding") {
  CHECK(is_target({.all_linear = true}, kQuery, false));
  CHECK_FALSE(is_target({.all_linear = true}, "lm_head", true));
  CHECK_FALSE(adapts_embedding({.all_linear = true}));
  CHECK(adapts_embedding({.target_modules = {"embed_tokens"}}));
}

TEST_CASE("model/target_matching: all-linear in a list stands for names, beside others and on the chosen layers") {
  const AdapterSpec list{.all_linear = true, .target_modules = {"all-linear", "lm_head"}};
  CHECK(is_target(list, kQuery, false));
  CHECK(is_target(list, "lm_head", true));
  CHECK_FALSE(adapts_embedding(list));
  CHECK(adapts_embedding({.all_linear = true, .target_modules = {"all-linear", "embed_tokens"}}));
  const AdapterSpec second{.all_linear = true, .target_modules = {"all-linear"}, .layers_to_transform = {2}};
  CHECK_FALSE(is_target(second, kQuery, false));
  CHECK(is_target(second, "model.layers.2.self_attn.q_proj", false));
}

TEST_CASE("model/target_matching: what is excluded or trained as a copy is no target") {
  CHECK_FALSE(is_target({.all_linear = true, .exclude_modules = {"q_proj"}}, kQuery, false));
  CHECK(is_target({.all_linear = true, .exclude_modules = {"layers.2.self_attn.q_proj"}}, kQuery, false));
  CHECK_FALSE(is_target({.all_linear = true, .exclude_pattern = R"(.*\.[34]\..*)"}, kQuery, false));
  CHECK_FALSE(is_target({.target_modules = {"lm_head"}, .modules_to_save = {"lm_head"}}, "lm_head", true));
  CHECK_FALSE(is_target({.all_linear = true, .modules_to_save = {"self_attn"}}, kQuery, false));
  CHECK(is_target({.all_linear = true, .modules_to_save = {"attn"}}, kQuery, false));
}

TEST_CASE("model/target_matching: layers by number") {
  const auto on = [](std::vector<std::int64_t> layers, std::vector<std::string> lists = {}) {
    return AdapterSpec{.target_modules = {"q_proj", "w1"}, .layers_to_transform = layers, .layers_pattern = lists};
  };
  CHECK(is_target(on({1, 3}), kQuery, false));
  CHECK_FALSE(is_target(on({1, 30}), kQuery, false));
  CHECK(is_target(on({3}, {"blocks", "layers"}), kQuery, false));
  CHECK_FALSE(is_target(on({3}, {"blocks"}), kQuery, false));
  SUBCASE("the first number of a name counts, not an expert's") {
    const char* expert = "model.layers.3.block_sparse_moe.experts.7.w1";
    CHECK(is_target(on({3}), expert, false));
    CHECK_FALSE(is_target(on({7}), expert, false));
  }
  SUBCASE("names without a number are out, unless they are given in full") {
    AdapterSpec adapter = on({3});
    adapter.target_modules = {"head"};
    CHECK_FALSE(is_target(adapter, "model.head", false));
    adapter.target_modules = {"model.head"};
    CHECK(is_target(adapter, "model.head", false));
  }
}

TEST_CASE("model/target_matching: ranks and alphas by the first pattern that matches") {
  const AdapterSpec adapter{.r = 8,
                            .lora_alpha = 16,
                            .rank_pattern = {{"v_proj", 2}, {"q_proj", 4}, {R"(.*\.q_proj)", 32}},
                            .alpha_pattern = {{R"(layers\.3\.self_attn\.q_proj)", 1}}};
  CHECK(rank_for(adapter, kQuery) == 4);
  CHECK(rank_for(adapter, "model.layers.3.self_attn.k_proj") == 8);
  CHECK(scaling_for(adapter, kQuery) == 0.25);
  CHECK(scaling_for(adapter, "model.layers.0.self_attn.q_proj") == 4);
}

TEST_CASE("model/target_matching: experts by their old names and by those of their parameters") {
  const std::string mlp = "model.layers.1.mlp";
  const auto of = [&](const AdapterSpec& adapter) {
    return expert_adapters(adapter, mlp, design_of(Family::qwen3_moe).experts);
  };
  const auto old = of({.r = 3, .target_modules = {"gate_proj", "up_proj", "down_proj"}});
  CHECK(old.gate_up == 6);
  CHECK(old.down == 3);
  CHECK_FALSE(old.router);
  CHECK(of({.target_modules = {"gate_proj"}}).half);
  SUBCASE("which neither exclude_modules nor layers_to_transform reach") {
    const AdapterSpec limited{
        .target_modules = {"down_proj"}, .exclude_modules = {"down_proj"}, .layers_to_transform = {0}};
    CHECK(of(limited).down == 8);
  }
  const auto stacks = of({.r = 3,
                          .target_modules = {"q_proj"},
                          .target_parameters = {"experts.gate_up_proj", "gate.weight"},
                          .rank_pattern = {{"experts.gate_up_proj", 5}}});
  CHECK(stacks.gate_up == 5);
  CHECK(stacks.router == 3);
  CHECK_FALSE(stacks.down);
  CHECK_FALSE(of({.target_modules = {"q_proj"}}).any());
}
