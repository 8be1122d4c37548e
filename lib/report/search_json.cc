#include "report/search_json.h"

#include <nlohmann/json.hpp>

#include "report/job_json.h"
#include "report/json_parts.h"
#include "report/plan_json.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

Json beyond_json(const SearchedJob& beyond) {
  Json out{{"value", beyond.value}};
  if (const auto lack = lacking(beyond.report)) out["lacks_bytes"] = lack->count();
  if (!beyond.report.applicable()) out["reason"] = beyond.report.reason();
  return out;
}

Json searched_json(const SearchedPlan& searched, const SearchReport& report) {
  Json out{{"name", searched.plan.name}};
  if (searched.along) out["along"] = *searched.along;
  if (searched.found) {
    out["value"] = searched.found->value;
    if (searched.tokens_per_second_upper_bound)
      out["tokens_per_second_upper_bound"] = *searched.tokens_per_second_upper_bound;
    out["plan"] = plan_json(searched.found->report, report.job);
  }
  if (searched.beyond) out["beyond"] = beyond_json(*searched.beyond);
  return out;
}

}  // namespace

std::string search_json(const SearchReport& report, std::string_view tool_version) {
  Json out = opening_json(tool_version);
  out["job"] = job_json(report.job, report.parameters);
  out["verdict"] = found_any(report) ? "fits" : "does_not_fit";
  if (report.recommended) out["recommended"] = *report.recommended;
  if (report.resources) out["resources"] = resources_json(*report.resources);
  Json& search = out["search"];
  search["key"] = name_of(report.options.key);
  search["wanted"] = wants_fewest(report.options.key) ? "fewest" : "most";
  if (const auto& along = report.options.along)
    search["along"] = {{"key", name_of(along->key)}, {"values", along->values}};
  search["plans"] = Json::array();
  for (const SearchedPlan& searched : report.plans) search["plans"].push_back(searched_json(searched, report));
  out["diagnostics"] = diagnostics_json(report.diagnostics);
  return document_text(out);
}

}  // namespace qlp
