#include "checkpoint/weight_format.h"

#include <algorithm>
#include <cstring>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace qlp;

namespace {

std::vector<StoredTensor> layer(std::int64_t out = 256, std::int64_t in = 512) {
  return {{"norm.weight", DType::bfloat16, {in}, false, ""}, {"q.weight", DType::bfloat16, {out, in}, true, ""}};
}

struct Layout {
  DType dtype;
  Shape shape;
  bool has_data;
  friend bool operator==(const Layout&, const Layout&) = default;
};

Layout layout(const std::vector<StoredTensor>& tensors, std::string_view name) {
  const auto at = std::ranges::find(tensors, name, &StoredTensor::name);
  REQUIRE_MESSAGE(at != tensors.end(), std::string(name));
  if (!at->data.empty()) CHECK(at->data.size() == bytes_of(*at).count());
  return {at->dtype, at->shape, !at->data.empty()};
}

}  // namespace

TEST_CASE("checkpoint/weight_format: bitsandbytes keeps statistics beside the packed weight, and JSON on what it was") {
  const FourBitWeights format{{.double_quant = true, .compute_dtype = DType::bfloat16}};
  const auto tensors = *quantized(layer(), format);
  CHECK(tensors.size() == 7);
  CHECK(layout(tensors, "norm.weight") == Layout{DType::bfloat16, {512}, false});
  CHECK(layout(tensors, "q.weight") == Layout{DType::uint8, {256 * 512 / 2, 1}, false});
  CHECK(layout(tensors, "q.weight.absmax") == Layout{DType::uint8, {2048}, false});
  CHECK(layout(tensors, "q.weight.quant_map") == Layout{DType::float32, {16}, true});
  CHECK(layout(tensors, "q.weight.nested_absmax") == Layout{DType::float32, {8}, false});
  CHECK(layout(tensors, "q.weight.nested_quant_map") == Layout{DType::float32, {256}, true});
  const auto state = std::ranges::find(tensors, "q.weight.quant_state.bitsandbytes__nf4", &StoredTensor::name);
  REQUIRE(state != tensors.end());
  const auto json = nlohmann::json::parse(state->data);
  CHECK(json["shape"] == std::vector{256, 512});
  CHECK(json["dtype"] == "bfloat16");
  CHECK(json["nested_blocksize"] == 256);
}

TEST_CASE("checkpoint/weight_format: without double quantization absmax is float32; storage may be floating") {
  const FourBitWeights format{{.quant_type = QuantType::fp4, .quant_storage = DType::bfloat16}};
  const auto tensors = *quantized(layer(), format);
  CHECK(tensors.size() == 5);
  CHECK(layout(tensors, "q.weight") == Layout{DType::bfloat16, {256 * 512 / 4, 1}, false});
  CHECK(layout(tensors, "q.weight.absmax") == Layout{DType::float32, {2048}, false});
  CHECK(layout(tensors, "q.weight.quant_state.bitsandbytes__fp4").has_data);
}

TEST_CASE("checkpoint/weight_format: GPTQ packs along inputs and says each input's group, AWQ packs along outputs") {
  const auto gptq = *quantized(layer(), GptqFormat{});
  CHECK(layout(gptq, "q.qweight") == Layout{DType::int32, {64, 256}, false});
  CHECK(layout(gptq, "q.qzeros") == Layout{DType::int32, {4, 32}, false});
  CHECK(layout(gptq, "q.scales") == Layout{DType::float16, {4, 256}, false});
  CHECK(layout(gptq, "q.g_idx") == Layout{DType::int32, {512}, true});
  std::int32_t last = 0;
  const auto& index = std::ranges::find(gptq, "q.g_idx", &StoredTensor::name)->data;
  std::memcpy(&last, index.data() + index.size() - sizeof(last), sizeof(last));
  CHECK(last == 3);
  const auto awq = *quantized(layer(), AwqFormat{});
  CHECK(layout(awq, "q.qweight") == Layout{DType::int32, {512, 32}, false});
  CHECK(awq.size() == 4);
}

TEST_CASE("checkpoint/weight_format: MXFP4 packs stacks of experts and leaves linear layers and biases as they are") {
  auto tensors = layer();
  const std::string experts = "model.layers.0.mlp.experts.";
  tensors.push_back({experts + "gate_up_proj", DType::bfloat16, {4, 64, 96}, false, ""});
  tensors.push_back({experts + "gate_up_proj_bias", DType::bfloat16, {4, 96}, false, ""});
  const auto packed = *quantized(tensors, Mxfp4Format{});
  CHECK(packed.size() == 5);
  CHECK(layout(packed, experts + "gate_up_proj_blocks") == Layout{DType::uint8, {4, 96, 2, 16}, false});
  CHECK(layout(packed, experts + "gate_up_proj_scales") == Layout{DType::uint8, {4, 96, 2}, false});
  CHECK(layout(packed, experts + "gate_up_proj_bias") == Layout{DType::bfloat16, {4, 96}, false});
  CHECK(layout(packed, "q.weight") == Layout{DType::bfloat16, {256, 512}, false});
  const auto odd = quantized({{experts + "down_proj", DType::bfloat16, {4, 40, 8}, false, ""}}, Mxfp4Format{});
  REQUIRE_FALSE(odd);
  CHECK(odd.error().front().code == "not-divisible");
  CHECK(quantized(layer(), Mxfp4Format{}).error().front().code == "nothing-to-quantize");
}

TEST_CASE("checkpoint/weight_format: what cannot be packed is refused by name") {
  const auto odd = quantized(layer(256, 500), GptqFormat{});
  REQUIRE_FALSE(odd);
  CHECK(odd.error().front().code == "not-divisible");
  CHECK(odd.error().front().message.find("q.weight [256, 500]") != std::string::npos);
  const auto none = quantized({{"n.weight", DType::bfloat16, {4}, false, ""}}, AwqFormat{});
  REQUIRE_FALSE(none);
  CHECK(none.error().front().code == "nothing-to-quantize");
}

TEST_CASE("checkpoint/weight_format: config.json says the format in the words of its library") {
  CHECK(quantization_config(PlainFormat{}).empty());
  const auto bnb = nlohmann::json::parse(quantization_config(FourBitWeights{{.double_quant = true}}));
  CHECK(bnb["quant_method"] == "bitsandbytes");
  CHECK(bnb["bnb_4bit_use_double_quant"] == true);
  CHECK(bnb["load_in_4bit"] == true);
  CHECK(nlohmann::json::parse(quantization_config(GptqFormat{{.group_size = 64}}))["group_size"] == 64);
  CHECK(nlohmann::json::parse(quantization_config(AwqFormat{}))["version"] == "gemm");
  CHECK(nlohmann::json::parse(quantization_config(Mxfp4Format{}))["quant_method"] == "mxfp4");
}
