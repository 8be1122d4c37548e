#include "report/report_json.h"

#include <nlohmann/json.hpp>

#include "estimate/ledger.h"
#include "report/format.h"
#include "report/job_json.h"
#include "report/json_parts.h"
#include "report/plan_json.h"
#include "report/verification_json.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

Json findings_json(const std::vector<Finding>& findings) {
  Json out = Json::array();
  for (const Finding& finding : findings) {
    Json entry{{"severity", name_of(finding.severity)},
               {"code", finding.code},
               {"plan", finding.plan},
               {"message", finding.message}};
    if (finding.evidence) entry["evidence_bytes"] = finding.evidence->count();
    if (!finding.key_path.empty()) entry["key_path"] = finding.key_path;
    if (!finding.hint.empty()) entry["hint"] = finding.hint;
    if (finding.fix) {
      const PricedFix& fix = *finding.fix;
      entry["fix"] = {{"text", fix.text},
                      {"plan", fix.plan},
                      {"peak_allocated_bytes", fix.peak_allocated.count()},
                      {"device_used_bytes", fix.device_used.count()},
                      {"fits", fix.fits}};
      if (fix.saving) entry["fix"]["saving_bytes"] = fix.saving->count();
    }
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

std::string report_json(const Report& report, std::string_view tool_version, const std::optional<Stamp>& stamp) {
  Json out = opening_json(tool_version);
  if (stamp) out["stamp"] = {{"time", stamp->time}, {"host", stamp->host}, {"job_file", stamp->job_file}};
  out["job"] = job_json(report.job, report.parameters);
  out["verdict"] = any_fits(report) ? "fits" : "does_not_fit";
  if (report.recommended) out["recommended"] = *report.recommended;
  if (report.resources) out["resources"] = resources_json(*report.resources);
  out["plans"] = Json::array();
  for (const auto& plan : report.plans) out["plans"].push_back(plan_json(plan, report.job));
  if (report.findings) out["findings"] = findings_json(*report.findings);
  if (report.verification) out["verification"] = verification_json(*report.verification);
  out["diagnostics"] = diagnostics_json(report.diagnostics);
  return document_text(out);
}

}  // namespace qlp
