#include "report/trace_json.h"

#include <nlohmann/json.hpp>

#include "report/format.h"
#include "report/json_parts.h"
#include "report/report_json.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

/// A value as JSON had it, or as text.
Json value_json(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() || value.is_structured() ? Json(text) : value;
}

/// Without categories where no inventory was made.
Json traced_peak_json(const PeakReport& peak, bool with_categories) {
  Json out = peak_json(peak);
  if (!with_categories) out.erase("categories");
  return out;
}

Json rank_json(const TracedRank& traced) {
  Json out{{"rank", traced.report.rank}, {"device", traced.device}, {"retries", traced.retries}};
  out["peak"] = traced_peak_json(traced.report.peak, traced.has_inventory);
  if (traced.trained) out["training_peak"] = traced_peak_json(traced.report.training_peak, false);
  out["persistent"] = figures_json(traced.report.persistent);
  out["phases"] = Json::array();
  for (const PhaseReport& phase : traced.report.phases)
    out["phases"].push_back({{"name", phase.name},
                             {"phase", phase.phase},
                             {"peak", figures_json(phase.peak)},
                             {"held", figures_json(phase.held)}});
  if (traced.has_inventory) out["top_tensors"] = inventory_json(traced.report.top_tensors);
  return out;
}

Json answers_json(const std::vector<ProbedAnswer>& answers) {
  Json out = Json::array();
  for (const ProbedAnswer& answer : answers)
    out.push_back({{"kind", answer.kind},
                   {"operation", answer.operation},
                   {"place", answer.place},
                   {"value", value_json(answer.value)},
                   {"count", answer.count}});
  return out;
}

Json program_json(const TraceReport& report) {
  const ClusterSpec& cluster = report.cluster;
  Json out{{"command", report.command}, {"outcome", name_of(report.outcome)}};
  if (!report.message.empty()) out["message"] = report.message;
  out["gpu"] = {{"name", cluster.gpu.name},
                {"capacity_bytes", cluster.gpu.capacity.count()},
                {"capacity_source", cluster.gpu.capacity_source},
                {"compute_capability", compute_capability_text(cluster.gpu.compute_capability)},
                {"sm_count", cluster.gpu.sm_count}};
  out["margin"] = cluster.margin;
  out["world_size"] = cluster.world_size;
  if (report.played_rank) out["played_rank"] = *report.played_rank;
  out["versions"] = Json::object();
  for (const auto& [name, version] : report.versions) out["versions"][name] = version;
  out["ranks"] = Json::array();
  for (const TracedRank& rank : report.ranks) out["ranks"].push_back(rank_json(rank));
  out["outside"] = outside_json(report.outside);
  out["answers"] = answers_json(report.answers);
  out["unimplemented"] = Json::array();
  for (const auto& [name, calls] : report.unimplemented)
    out["unimplemented"].push_back({{"name", name}, {"calls", calls}});
  out["assumptions"] = report.assumptions;
  return out;
}

}  // namespace

std::string trace_json(const TraceReport& report, std::string_view tool_version) {
  Json out = opening_json(tool_version);
  const bool answered = report.outcome == TraceOutcome::ran || report.outcome == TraceOutcome::out_of_memory;
  if (answered) out["verdict"] = report.fits ? "fits" : "does_not_fit";
  out["trace"] = program_json(report);
  out["diagnostics"] = diagnostics_json(report.diagnostics);
  return document_text(out);
}

std::string probe_request_json(const ProbeRequest& request) {
  Json out{{"directory", request.directory},
           {"steps", request.steps},
           {"world_size", request.world_size},
           {"rank", request.rank},
           {"gpus_per_node", request.gpus_per_node},
           {"inventory", request.inventory},
           {"snapshot", request.snapshot}};
  out["answers"] = Json::object();
  for (const auto& [what, value] : request.answers) out["answers"][what] = value_json(value);
  return document_text(out);
}

}  // namespace qlp
