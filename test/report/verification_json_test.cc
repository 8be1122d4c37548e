#include "report/verification_json.h"

#include <limits>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "report/json_schema.h"
#include "report/report_json.h"
#include "report/report_schema.h"
#include "report/sample_report.h"
#include "report/sample_verification.h"

namespace qlp {
namespace {

using Json = nlohmann::json;

Json checked(const Verification& verification) {
  Report report = sample_report();
  report.verification = verification;
  const Json json = Json::parse(report_json(report, "0.1.0"));
  CHECK(JsonSchema{Json::parse(report_schema())}.findings(json) == std::vector<std::string>{});
  return json.at("verification");
}

TEST_CASE("report/verification_json: measured, predicted and the residual of every figure") {
  const Json json = checked(sample_verification());
  CHECK(json["verdict"] == "within_tolerance");
  const Json& rank = json["ranks"][1];
  CHECK(rank["rank"] == 1);
  const Json& allocated = rank["figures"][0];
  CHECK(allocated["measured_bytes"] == 1'005'000);
  CHECK(allocated["predicted_bytes"] == 1'000'000);
  CHECK(allocated["unaccounted_bytes"] == 5'000);
  CHECK(allocated["error"] == 0.005);
  CHECK(allocated["judged"] == true);
  CHECK(rank["figures"][3]["unaccounted_bytes"] == -259'520);
  CHECK_FALSE(rank["figures"][4].contains("measured_bytes"));
  CHECK_FALSE(rank["figures"][4].contains("unaccounted_bytes"));
  CHECK(rank["losses"] == Json({6.5, 6.25}));
}

TEST_CASE("report/verification_json: what is alive at the peak, where the libraries' own step was run") {
  Verification v = sample_verification();
  CHECK_FALSE(checked(v).contains("runner"));
  v.runner = VerifyRunner::torch;
  v.ranks[0].peak =
      ComparedPeak{.phase = "micro1.backward",
                   .categories = {{Category::adapter, Bytes{1024}, Bytes{512}}},
                   .tensors = {{.size = Bytes{512}, .measured = 2, .predicted = 1, .measured_as = "a.py:3"}}};
  const Json json = checked(v);
  CHECK(json["runner"] == "torch");
  const Json& peak = json["ranks"][0]["peak"];
  CHECK(peak["categories"]["adapter"]["measured_bytes"] == 1024);
  CHECK(peak["tensors"][0]["measured_count"] == 2);
  CHECK_FALSE(peak["tensors"][0].contains("predicted_as"));
}

TEST_CASE("report/verification_json: steps that were skipped are named where there are some") {
  Verification v = sample_verification();
  v.ranks[1].skipped_steps = {1, 2};
  const Json json = checked(v);
  CHECK_FALSE(json["ranks"][0].contains("skipped_steps"));
  CHECK(json["ranks"][1]["skipped_steps"] == Json({1, 2}));
}

TEST_CASE("report/verification_json: failures, emulation and losses that are no numbers are as the schema says") {
  Verification v = sample_verification();
  v.ranks[0].end = RankEnd::hung;
  v.ranks[0].message = "no word for 60 s";
  v.ranks[0].output = "text \xff";
  v.ranks[0].losses = {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()};
  v.alone = true;
  Json json = checked(v);
  CHECK(json["verdict"] == "failed");
  CHECK(json["ranks"][0]["end"] == "hung");
  CHECK(json["ranks"][0]["losses"] == Json({"nan", "-inf"}));
  v.ranks[1].end = RankEnd::out_of_memory;
  CHECK(checked(v)["verdict"] == "out_of_memory");
  v.interrupted = true;
  CHECK(checked(v)["verdict"] == "interrupted");
}

}  // namespace
}  // namespace qlp
