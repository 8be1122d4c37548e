#include "report/verification_json.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

Json figure_json(const ComparedFigure& figure) {
  Json out{{"name", figure.name}, {"phase_name", figure.phase}};
  if (figure.measured) out["measured_bytes"] = figure.measured->count();
  if (figure.predicted) out["predicted_bytes"] = figure.predicted->count();
  if (const auto residual = figure.unaccounted()) {
    out["unaccounted_bytes"] = residual->count();
    if (*figure.predicted > Bytes{})
      out["error"] = static_cast<double>(residual->count()) / static_cast<double>(figure.predicted->count());
  }
  out["judged"] = figure.judged;
  out["source"] = figure.source;
  return out;
}

/// JSON has no NaN and no infinity: they become their words.
Json numbers_json(const std::vector<double>& numbers) {
  Json out = Json::array();
  for (const double number : numbers) out.push_back(std::isfinite(number) ? Json(number) : Json(exact_number(number)));
  return out;
}

Json peak_json(const ComparedPeak& peak) {
  Json out{{"phase_name", peak.phase}, {"categories", Json::object()}, {"tensors", Json::array()}};
  for (const ComparedCategory& c : peak.categories)
    out["categories"][std::string(name_of(c.category))] = {{"measured_bytes", c.measured.count()},
                                                           {"predicted_bytes", c.predicted.count()}};
  for (const TensorDifference& t : peak.tensors) {
    Json row{{"size_bytes", t.size.count()}, {"measured_count", t.measured}, {"predicted_count", t.predicted}};
    if (!t.measured_as.empty()) row["measured_as"] = t.measured_as;
    if (!t.predicted_as.empty()) row["predicted_as"] = t.predicted_as;
    out["tensors"].push_back(std::move(row));
  }
  return out;
}

Json rank_json(const RankVerification& rank) {
  Json out{{"rank", rank.rank}, {"end", name_of(rank.end)}, {"state", rank.state}};
  if (!rank.message.empty()) out["message"] = rank.message;
  if (!rank.output.empty()) out["output"] = rank.output;
  if (!rank.device.empty()) out["device"] = rank.device;
  out["figures"] = Json::array();
  for (const ComparedFigure& figure : rank.figures) out["figures"].push_back(figure_json(figure));
  if (rank.peak) out["peak"] = peak_json(*rank.peak);
  out["losses"] = numbers_json(rank.losses);
  if (!rank.gradient_norms.empty()) out["gradient_norms"] = numbers_json(rank.gradient_norms);
  if (!rank.skipped_steps.empty()) out["skipped_steps"] = rank.skipped_steps;
  return out;
}

}  // namespace

std::string_view verdict_of(const Verification& verification) {
  if (verification.interrupted) return "interrupted";
  if (verification.within_tolerance()) return "within_tolerance";
  if (verification.finished()) return "outside_tolerance";
  return verification.out_of_memory() ? "out_of_memory" : "failed";
}

Json verification_json(const Verification& verification) {
  Json out{{"verdict", verdict_of(verification)},
           {"plan", verification.plan},
           {"device", name_of(verification.device)},
           {"world_size", verification.world_size}};
  if (verification.runner != VerifyRunner::own) out["runner"] = name_of(verification.runner);
  if (verification.alone) out["alone"] = true;
  out["steps"] = verification.steps;
  out["tolerance"] = {{"bytes", verification.tolerance.bytes.count()}, {"share", verification.tolerance.share}};
  if (!verification.versions.empty()) out["versions"] = verification.versions;
  out["ranks"] = Json::array();
  for (const RankVerification& rank : verification.ranks) out["ranks"].push_back(rank_json(rank));
  return out;
}

}  // namespace qlp
