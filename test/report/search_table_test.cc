#include "report/search_table.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "report/json_schema.h"
#include "report/report_schema.h"
#include "report/sample_report.h"
#include "report/search_json.h"

using namespace qlp;

namespace {

/// fsdp2-no-reshard goes to 3, ddp not even to 1, fsdp1-full-shard cannot run.
SearchReport sample_search() {
  const Report all = sample_report();
  const auto report_of = [&](const char* name) {
    for (const PlanReport& plan : all.plans)
      if (plan.plan.name == name) return plan;
    return PlanReport{};
  };
  SearchReport search;
  search.job = all.job;
  search.parameters = all.parameters;
  const PlanReport best = report_of("fsdp2-no-reshard"), none = report_of("ddp"),
                   refused = report_of("fsdp1-full-shard");
  search.plans = {
      {.plan = best.plan, .along = {}, .found = SearchedJob{3, best}, .beyond = SearchedJob{4, none}},
      {.plan = none.plan, .along = {}, .found = {}, .beyond = SearchedJob{1, none}},
      {.plan = refused.plan, .along = {}, .found = {}, .beyond = SearchedJob{1, refused}},
  };
  search.recommended = best.plan.name;
  search.resources = all.resources;
  return search;
}

SearchReport sample_grid() {
  SearchReport search = sample_search();
  search.recommended.reset();
  search.resources.reset();
  search.options.along = SearchAlong{SearchKey::seq_len, {64, 128}};
  std::vector<SearchedPlan> plans;
  for (const SearchedPlan& plan : search.plans) {
    for (const std::int64_t value : search.options.along->values) {
      plans.push_back(plan);
      plans.back().along = value;
    }
  }
  plans[0].beyond.reset();
  search.plans = plans;
  return search;
}

}  // namespace

TEST_CASE("report/search_table: a row for each plan that runs, what its neighbour lacks, and what cannot run") {
  CHECK(search_table(sample_search()) == R"(tiny, QLoRA nf4 r 16, 1 x 128 tokens, 8 x H100 SXM5 80GB
largest micro_batch_size that fits

plan              verdict       micro_batch_size  allocated GiB  device GiB  headroom GiB    beyond, GiB
fsdp2-no-reshard  fits                         3          68.26       69.82          7.78  4 lacks 12.04
ddp               does not fit                                                             1 lacks 12.04

recommended: fsdp2-no-reshard with micro_batch_size 3, on 8 GPUs with 71.41 GiB each

cannot run: fsdp1-full-shard (-v says why)
)");
}

TEST_CASE("report/search_table: a grid along another key") {
  CHECK(search_table(sample_grid(), {.brief = true}) == R"(seq_len             64  128
fsdp2-no-reshard  >= 3    3
ddp                  -    -
)");
}

TEST_CASE("report/search_table: as JSON it is what the schema describes") {
  const JsonSchema schema{nlohmann::json::parse(report_schema())};
  for (const SearchReport& report : {sample_search(), sample_grid()})
    CHECK(schema.findings(nlohmann::json::parse(search_json(report, "1.2.3"))) == std::vector<std::string>{});
}
