#include "report/json_parts.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "report/format.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTopTensors = 40;

/// Between a GPU that never lags and one that lags as far as it can.
Json range_json(Bytes a, Bytes b) { return {{"min", std::min(a, b).count()}, {"max", std::max(a, b).count()}}; }

}  // namespace

Json opening_json(std::string_view tool_version) {
  return {{"schema_version", kSchemaVersion}, {"tool", {{"name", "qlora-plan"}, {"version", tool_version}}}};
}

Json figures_json(const LedgerFigures& figures) {
  return {{"requested_bytes", figures.requested.count()},
          {"allocated_bytes", figures.allocated.count()},
          {"active_bytes", figures.active.count()},
          {"reserved_bytes", figures.reserved.count()}};
}

Json categories_json(const CategoryBytes& categories) {
  Json out;
  for (std::size_t i = 0; i < categories.size(); ++i) out[std::string{kCategoryNames[i]}] = categories[i].count();
  return out;
}

Json peak_json(const PeakReport& peak) {
  Json out{{"phase", peak.phase}, {"phase_name", peak.phase_label}};
  out.update(figures_json(peak.figures));
  if (peak.slowest) {
    out["active"] = range_json(peak.figures.active, peak.slowest->active);
    out["reserved"] = range_json(peak.figures.reserved, peak.slowest->reserved);
  }
  if (peak.reserved_when_limited) out["reserved_when_limited_bytes"] = peak.reserved_when_limited->count();
  out["device_used_bytes"] = peak.device_used.count();
  if (peak.required_reserved) out["required_reserved_bytes"] = peak.required_reserved->count();
  if (peak.required_device) out["required_device_bytes"] = peak.required_device->count();
  out["capacity_bytes"] = peak.capacity.count();
  out["headroom_bytes"] = peak.headroom.count();
  out["categories"] = categories_json(peak.categories);
  return out;
}

Json inventory_json(const std::vector<InventoryItem>& items) {
  Json out = Json::array();
  for (const auto& item : items) {
    if (out.size() == kTopTensors) break;
    Json entry{{"category", name_of(item.category)}};
    if (!item.op.empty()) entry["op"] = item.op;
    if (!item.module.empty()) entry["module"] = item.module;
    if (!item.tensor.empty()) entry["tensor"] = item.tensor;
    entry["count"] = item.count;
    entry["requested_bytes"] = item.requested.count();
    entry["allocated_bytes"] = item.allocated.count();
    out.push_back(std::move(entry));
  }
  return out;
}

Json outside_json(const std::vector<OutsideTerm>& terms) {
  Json out = Json::array();
  for (const auto& term : terms) {
    Json entry{{"name", term.name}, {"device_bytes", term.bytes.count()}, {"source", term.source}};
    if (term.managed) entry["managed"] = true;
    if (term.measured) entry["measured"] = true;
    out.push_back(std::move(entry));
  }
  return out;
}

Json diagnostics_json(const Diagnostics& diagnostics) {
  Json out = Json::array();
  for (const auto& d : diagnostics) {
    Json entry{{"severity", name_of(d.severity)}, {"code", d.code}, {"message", d.message}};
    if (!d.key_path.empty()) entry["key_path"] = d.key_path;
    if (d.position.line != 0) entry["line"] = d.position.line;
    if (d.position.column != 0) entry["column"] = d.position.column;
    if (!d.hint.empty()) entry["hint"] = d.hint;
    out.push_back(std::move(entry));
  }
  return out;
}

std::string document_text(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace qlp
