#include "report/report_json.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "report/json_schema.h"
#include "report/report_schema.h"
#include "report/sample_report.h"

namespace qlp {
namespace {

using Json = nlohmann::json;

std::vector<std::string> findings(const std::string& report) {
  return JsonSchema{Json::parse(report_schema())}.findings(Json::parse(report));
}

}  // namespace

TEST_CASE("report/report_json: a report is as the schema says") {
  CHECK(findings(report_json(sample_report(), "0.1.0")) == std::vector<std::string>{});
  const Stamp stamp{.time = "2026-01-02T03:04:05Z", .host = "node1", .job_file = "job.yaml"};
  CHECK(findings(report_json(sample_report(), "0.1.0", stamp)) == std::vector<std::string>{});
}

TEST_CASE("report/report_json: findings are as the schema says") {
  Report report = sample_report();
  report.findings = {{.severity = Severity::error,
                      .code = "over-budget",
                      .plan = "ddp",
                      .message = "too much",
                      .evidence = Bytes{7},
                      .hint = "less",
                      .key_path = "cluster",
                      .fix = PricedFix{.text = "take the plan fsdp2",
                                       .plan = "fsdp2",
                                       .peak_allocated = Bytes{3},
                                       .device_used = Bytes{4},
                                       .fits = true,
                                       .saving = ByteDelta{-2}}},
                     {.severity = Severity::note, .code = "x", .plan = "ddp", .message = "y"}};
  const std::string text = report_json(report, "0.1.0");
  CHECK(findings(text) == std::vector<std::string>{});
  const Json first = Json::parse(text)["findings"][0];
  CHECK(first["evidence_bytes"] == 7);
  CHECK(first["fix"]["saving_bytes"] == -2);
}

TEST_CASE("report/report_json: a full fine-tune that fits nowhere is as the schema says") {
  Report report = sample_report();
  report.job.quantization.reset();
  report.job.adapter.reset();
  report.job.training.gradient_checkpointing = GradientCheckpointing::none;
  report.job.model.sliding_window = 1024;
  report.recommended.reset();
  report.resources.reset();
  for (auto& plan : report.plans) plan.fits = false;
  const std::string text = report_json(report, "0.1.0");
  CHECK(findings(text) == std::vector<std::string>{});
  const Json json = Json::parse(text);
  CHECK(json["verdict"] == "does_not_fit");
  CHECK_FALSE(json.contains("recommended"));
  CHECK_FALSE(json.contains("resources"));
  CHECK_FALSE(json["job"].contains("adapter"));
  CHECK(json["job"]["training"]["gradient_checkpointing"] == false);
}

TEST_CASE("report/report_json: the validator of these tests finds what is wrong") {
  Json json = Json::parse(report_json(sample_report(), "0.1.0"));
  json["plans"][0]["fits"] = "yes";
  json["plans"][1]["peak"]["reserved_bytes"] = -1;
  json["plans"][1]["peak"]["colour"] = "red";
  json.erase("verdict");
  CHECK(findings(json.dump()) ==
        std::vector<std::string>{": matches 0 of the choices", "/plans/0/fits: not of type boolean",
                                 "/plans/1/peak/colour: not described", "/plans/1/peak/reserved_bytes: too small"});
}

TEST_CASE("report/report_json: how rotary frequencies are stretched is told in the words of config.json") {
  Report report = sample_report();
  CHECK_FALSE(Json::parse(report_json(report, "0.1.0"))["job"]["model"].contains("rope_scaling"));
  const auto scaling = [&](const RopeScaling& told) {
    report.job.model.rope_scaling = told;
    const std::string text = report_json(report, "0.1.0");
    CHECK(findings(text) == std::vector<std::string>{});
    return Json::parse(text)["job"]["model"]["rope_scaling"];
  };
  CHECK(scaling({.rope_type = RopeStretch::llama3, .factor = 8, .original_max_position_embeddings = 8192}) ==
        Json{{"rope_type", "llama3"},
             {"factor", 8.0},
             {"original_max_position_embeddings", 8192},
             {"low_freq_factor", 1.0},
             {"high_freq_factor", 4.0}});
  CHECK(scaling({.rope_type = RopeStretch::yarn, .factor = 4, .mscale = 0.7})["mscale"] == 0.7);
  report.job.model.rope = RopeKind::longrope;
  CHECK(scaling({.long_factor = {1, 2}}) == Json{{"rope_type", "longrope"}, {"long_factor", {1.0, 2.0}}});
}

TEST_CASE("report/report_json: figures, verdicts and the recommended plan") {
  const Json json = Json::parse(report_json(sample_report(), "0.1.0"));
  CHECK(json["schema_version"] == "1.0");
  CHECK(json["tool"]["version"] == "0.1.0");
  CHECK(json["verdict"] == "fits");
  CHECK(json["recommended"] == "fsdp2-no-reshard");
  CHECK(json["job"]["parameters"] == Json{{"total", 1234567}, {"trainable", 4096}});
  CHECK(json["resources"]["gpus"] == 8);
  CHECK(json["resources"]["nodes"] == 1);

  const Json& single = json["plans"][0];
  CHECK(single["name"] == "single");
  CHECK(single["peak"]["reserved_bytes"] == 60'000ULL << 20);
  CHECK(single["peak"]["device_used_bytes"] == (60'000ULL + 528 + 164) << 20);
  CHECK(single["peak"]["phase"] == "backward");
  CHECK(single["peak"]["phase_name"] == "micro1.backward");
  CHECK_FALSE(single.contains("ranks"));
  CHECK_FALSE(single["peak"].contains("required_reserved_bytes"));
  CHECK(single["top_tensors"].size() == 3);

  const Json& tight = json["plans"][2];
  CHECK(tight["fits"] == true);
  CHECK(tight["cache_given_back"] == true);
  CHECK(tight["rank"] == 7);
  REQUIRE(tight["ranks"].size() == 2);
  CHECK(tight["ranks"][0]["peak"] == tight["peak"]);

  const Json& refused = json["plans"][4];
  CHECK(refused["applicable"] == false);
  CHECK(refused["fits"] == false);
  CHECK(refused["reason"].get<std::string>().starts_with("uint8"));
  CHECK_FALSE(refused.contains("peak"));
}

TEST_CASE("report/report_json: equal reports give equal bytes, and paths are left out") {
  const std::string text = report_json(sample_report(), "0.1.0");
  CHECK(text == report_json(sample_report(), "0.1.0"));
  CHECK(text.ends_with("}\n"));
  CHECK(text.find("null") == std::string::npos);
  CHECK(text.find("job.yaml") == std::string::npos);
}

}  // namespace qlp
