#include "checkpoint/model_tensors.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "checkpoint/sparse_checkpoint.h"
#include "config/model_catalogue.h"
#include "config/model_reader.h"
#include "model/build.h"
#include "model/parameter_count.h"

using namespace qlp;

namespace {

ModelSpec known(std::string_view name) { return *catalogue_spec(*find_model(name)); }

const StoredTensor* named(const std::vector<StoredTensor>& tensors, std::string_view name) {
  const auto at = std::ranges::find(tensors, name, &StoredTensor::name);
  return at == tensors.end() ? nullptr : &*at;
}

}  // namespace

TEST_CASE("checkpoint/model_tensors: every model that is known by name has as many elements as its closed form") {
  for (const auto name : model_names()) {
    CAPTURE(name);
    const ModelSpec spec = known(name);
    CHECK(count_elements(model_tensors(spec, DType::bfloat16)) == parameter_count(spec));
  }
}

TEST_CASE("checkpoint/model_tensors: a dense model has the names of its module tree") {
  const ModelSpec spec = known("gemma-2-2b");
  const auto tensors = model_tensors(spec, DType::float16);
  const auto model = build_model(spec, {});
  const auto parameters = (*model)->parameters();
  REQUIRE(tensors.size() == parameters.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(tensors[i].name == parameters[i]->name);
    CHECK(tensors[i].shape == parameters[i]->shape);
    CHECK(tensors[i].dtype == DType::float16);
  }
  CHECK_FALSE(named(tensors, "lm_head.weight"));  // tied
  CHECK(named(tensors, "model.layers.3.mlp.down_proj.weight")->linear);
  CHECK_FALSE(named(tensors, "model.embed_tokens.weight")->linear);
  CHECK_FALSE(named(tensors, "model.norm.weight")->linear);
}

TEST_CASE("checkpoint/model_tensors: experts are stored one by one, under the names of the hub") {
  const auto mixtral = model_tensors(known("mixtral-8x7b"), DType::bfloat16);
  CHECK(named(mixtral, "model.layers.0.block_sparse_moe.experts.7.w1.weight")->shape == Shape{14336, 4096});
  CHECK(named(mixtral, "model.layers.0.block_sparse_moe.experts.7.w2.weight")->shape == Shape{4096, 14336});
  CHECK(named(mixtral, "model.layers.31.block_sparse_moe.gate.weight")->shape == Shape{8, 4096});
  const auto qwen = model_tensors(known("qwen3-30b-a3b"), DType::bfloat16);
  CHECK(named(qwen, "model.layers.47.mlp.experts.127.up_proj.weight")->shape == Shape{768, 2048});
  CHECK(named(qwen, "model.layers.0.mlp.gate.weight")->shape == Shape{128, 2048});
  CHECK_FALSE(named(qwen, "model.layers.0.mlp.experts.gate_up_proj"));
}
