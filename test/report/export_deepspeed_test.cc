#include "report/export_deepspeed.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plan/catalogue.h"

namespace qlp {

TEST_CASE("report/export_deepspeed: what transformers fills in is auto, all else is said") {
  const auto text = deepspeed_config(*find_plan("zero3"));
  REQUIRE(text);
  const auto json = nlohmann::json::parse(*text);
  CHECK(json["zero_optimization"]["stage"] == 3);
  CHECK(json["zero_optimization"]["stage3_max_live_parameters"] == 1'000'000'000);
  CHECK(json["zero_optimization"]["offload_param"]["device"] == "none");
  CHECK(json["gradient_clipping"] == "auto");
  CHECK(json["train_micro_batch_size_per_gpu"] == "auto");
  CHECK(json["bf16"]["enabled"] == "auto");
  CHECK_FALSE(json.contains("communication_data_type"));  // in which DeepSpeed knows no auto
  NamedPlan plan = *find_plan("zero2");
  auto& zero = std::get<Zero>(plan.plan);
  zero.communication_data_type = ZeroDType::fp32;
  zero.gradient_clipping = Unsaid::left_out;
  zero.bf16.enabled = true;
  const auto other = nlohmann::json::parse(*deepspeed_config(plan));
  CHECK(other["communication_data_type"] == "fp32");
  CHECK(other["bf16"]["enabled"] == true);
  CHECK_FALSE(other.contains("gradient_clipping"));
}

TEST_CASE("report/export_deepspeed: only ZeRO plans have such a file") {
  CHECK(deepspeed_config(*find_plan("zero3")));
  CHECK_FALSE(deepspeed_config(*find_plan("fsdp2")));
}

}  // namespace qlp
