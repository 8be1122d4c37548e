#include "report/trace_json.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plan/gpu_catalogue.h"
#include "report/json_schema.h"
#include "report/report_schema.h"
#include "trace/assemble.h"
#include "trace/records.h"

namespace qlp {
namespace {

using Json = nlohmann::json;

TraceReport report(const ProgramRun& run, const std::string& text) {
  TraceSetup setup{.command = {"python", "train.py"}, .cluster = {}, .played_rank = 3};
  setup.cluster.gpu = *find_gpu("A100 SXM4 80GB");
  setup.cluster.world_size = 8;
  return assemble(setup, {*read_probe_record(text, "x")}, run);
}

const ProgramRun kWell{.how = RunEnd::ended, .end = {}, .message = {}, .output = {}};

}  // namespace

TEST_CASE("report/trace_json: a report is as the schema says, whatever its outcome") {
  const JsonSchema schema{Json::parse(report_schema())};
  const std::string more = R"({"event": "library", "unimplemented": {"cufftExec": 2}, "assumptions": ["one"]})";
  for (const std::string& text :
       {linear_record(), linear_record() + more + "\n", torch_event("2.8.0", ""), phase_event("load", "load", "1")}) {
    CHECK(schema.findings(Json::parse(trace_json(report(kWell, text), "0.1.0"))) == std::vector<std::string>{});
  }
}

TEST_CASE("report/trace_json: figures are the allocator's, in bytes; a verdict only where there is an answer") {
  const Json ran = Json::parse(trace_json(report(kWell, linear_record()), "0.1.0"));
  CHECK(ran["verdict"] == "fits");
  CHECK(ran["trace"]["played_rank"] == 3);
  const Json& rank = ran["trace"]["ranks"][0];
  CHECK(rank["peak"]["allocated_bytes"] == 18368000);
  CHECK(rank["peak"]["categories"]["workspace"] == 17039360);
  CHECK(rank["phases"][2]["name"] == "micro1.forward");
  CHECK(ran["trace"]["answers"][0]["value"] == 0.02);
  const Json failed = Json::parse(trace_json(report(kWell, torch_event("2.8.0", "")), "0.1.0"));
  CHECK_FALSE(failed.contains("verdict"));
  CHECK(failed["trace"]["outcome"] == "failed");
}

TEST_CASE("report/trace_json: answers reach the probe as values of their kind") {
  ProbeRequest request;
  request.steps = 2;
  request.answers = {{"bool", "false"}, {"a.py:1", "0.5"}, {"int", "x\"y"}};
  const Json asked = Json::parse(probe_request_json(request));
  CHECK(asked["answers"] == Json{{"bool", false}, {"a.py:1", 0.5}, {"int", "x\"y"}});
  CHECK(asked["steps"] == 2);
  CHECK(asked["world_size"] == 0);
}

}  // namespace qlp
