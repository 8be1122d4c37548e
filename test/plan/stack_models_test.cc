#include "plan/stack_models.h"

#include <doctest/doctest.h>

namespace qlp {
namespace {

ModelStack with_transformers(std::uint32_t minor, std::uint32_t major = 4) {
  StackVersions versions;
  versions.transformers = {major, minor, 0};
  return ModelStack(versions);
}

}  // namespace

TEST_CASE("plan/stack_models: rotary tables move from the layers to the decoder") {
  const auto of = [](Family family, std::uint32_t minor) { return with_transformers(minor).behaviour(family).rotary; };
  CHECK(of(Family::mistral, 41).place == RotaryPlace::attention_buffers);
  CHECK(of(Family::mistral, 41).keeps_tables);
  CHECK(of(Family::mistral, 42).place == RotaryPlace::attention);
  CHECK_FALSE(of(Family::mistral, 42).keeps_tables);
  CHECK(of(Family::mistral, 47).in_every_attention);
  CHECK(of(Family::mistral, 48) == RotaryBehaviour{.keeps_original = false});
  CHECK(of(Family::llama, 40).place == RotaryPlace::attention);
  CHECK(of(Family::llama, 40).keeps_tables);
  CHECK_FALSE(of(Family::llama, 41).keeps_tables);
  CHECK(of(Family::llama, 43).place == RotaryPlace::decoder);
  CHECK(of(Family::llama, 43).in_every_attention);
  CHECK(of(Family::llama, 48) == RotaryBehaviour{.keeps_original = false});
  CHECK(with_transformers(0, 5).behaviour(Family::llama).rotary.keeps_original);
}

TEST_CASE("plan/stack_models: who upcasts the logits and averages the loss") {
  const auto by_model = [](Family family, std::uint32_t minor) {
    const ModelBehaviour behaviour = with_transformers(minor).behaviour(family);
    CHECK(behaviour.returns_float_logits == behaviour.averages_loss);
    return behaviour.averages_loss;
  };
  CHECK(by_model(Family::llama, 45));
  CHECK_FALSE(by_model(Family::llama, 46));
  CHECK(by_model(Family::mistral, 47));
  CHECK_FALSE(by_model(Family::mistral, 48));
}

TEST_CASE("plan/stack_models: caches in training") {
  const auto fills = [](std::uint32_t minor, std::uint32_t major = 4) {
    return with_transformers(minor, major).behaviour(Family::llama).fills_cache;
  };
  CHECK(fills(42));
  CHECK_FALSE(fills(43));
  CHECK_FALSE(fills(44));
  CHECK(fills(45));
  CHECK(fills(57));
  CHECK_FALSE(fills(0, 5));
}

TEST_CASE("plan/stack_models: flash attention gets repeated heads from Mistral until 4.47") {
  CHECK(with_transformers(47).behaviour(Family::mistral).flash_repeats_heads);
  CHECK_FALSE(with_transformers(48).behaviour(Family::mistral).flash_repeats_heads);
  CHECK_FALSE(with_transformers(47).behaviour(Family::llama).flash_repeats_heads);
}

}  // namespace qlp
