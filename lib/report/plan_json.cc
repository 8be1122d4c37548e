#include "report/plan_json.h"

#include <nlohmann/json.hpp>

#include "plan/job_names.h"
#include "plan/loading.h"
#include "plan/mistakes.h"
#include "report/job_json.h"
#include "report/json_parts.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

Json phases_json(const std::vector<PhaseReport>& phases) {
  Json out = Json::array();
  for (const auto& phase : phases) {
    Json entry{{"name", phase.name},
               {"phase", phase.phase},
               {"peak", figures_json(phase.peak)},
               {"held", figures_json(phase.held)},
               {"host", {{"peak_bytes", phase.host_peak.count()}, {"held_bytes", phase.host_held.count()}}}};
    if (!phase.inventory.empty()) {
      entry["categories"] = categories_json(phase.categories);
      entry["top_tensors"] = inventory_json(phase.inventory);
    }
    out.push_back(std::move(entry));
  }
  return out;
}

Json host_rank_json(const HostRank& rank) {
  return {{"phase_name", rank.phase},
          {"peak_bytes", rank.peak.count()},
          {"pinned_bytes", rank.pinned.count()},
          {"mapped_bytes", rank.mapped.count()},
          {"categories", categories_json(rank.categories)}};
}

Json host_json(const HostReport& host) {
  Json out{{"per_node_bytes", host.per_node.count()},     {"per_node_phase_name", host.per_node_phase},
           {"page_cache_bytes", host.page_cache.count()}, {"processes", host.processes},
           {"process_bytes", host.process.count()},       {"rank0", host_rank_json(host.rank0)}};
  if (host.others) out["others"] = host_rank_json(*host.others);
  return out;
}

/// The fields of one rank, which a plan carries for its worst rank and lists for each where they differ.
void put_rank(Json& out, const RankReport& rank) {
  out["rank"] = rank.rank;
  out["peak"] = peak_json(rank.peak);
  out["training_peak"] = peak_json(rank.training_peak);
  Json persistent = figures_json(rank.persistent);
  persistent["categories"] = categories_json(rank.persistent_categories);
  out["persistent"] = std::move(persistent);
  out["phases"] = phases_json(rank.phases);
  out["top_tensors"] = inventory_json(rank.top_tensors);
}

Json communication_json(const Communication& communication) {
  Json out{{"sent_bytes", communication.sent.count()},
           {"host_to_device_bytes", communication.host_to_device.count()},
           {"device_to_host_bytes", communication.device_to_host.count()},
           {"collectives", Json::array()}};
  for (const CollectiveTotal& total : communication.collectives)
    out["collectives"].push_back({{"kind", name_of(total.kind)},
                                  {"axis", name_of(total.group.axis)},
                                  {"ranks", total.group.size},
                                  {"stride", total.group.stride},
                                  {"count", total.count},
                                  {"payload_bytes", total.payload.count()},
                                  {"sent_bytes", total.sent.count()}});
  return out;
}

void put_terms(Json& out, const TimeTerms& terms) {
  out["compute_seconds"] = terms.compute;
  out["memory_seconds"] = terms.memory;
  out["communication_seconds"] = terms.communication;
  out["host_copies_seconds"] = terms.host_copies;
}

Json step_time_json(const StepTime& time) {
  Json out;
  put_terms(out, time.terms);
  for (const DTypeInfo& row : kDTypes)
    if (const double operations = time.operations[static_cast<std::size_t>(row.dtype)]; operations > 0)
      out["operations"][std::string{row.name}] = operations;
  out["memory_traffic_bytes"] = time.memory.count();
  out["phases"] = Json::array();
  for (const PhaseTime& phase : time.phases) {
    Json entry{{"phase", phase.phase}, {"times", phase.times}};
    put_terms(entry, phase.terms);
    out["phases"].push_back(std::move(entry));
  }
  return out;
}

}  // namespace

Json plan_json(const PlanReport& plan, const JobSpec& job) {
  Json out{{"name", plan.plan.name}, {"options", plan_options_json(plan.plan.plan)}, {"applicable", plan.applicable()}};
  if (const Mistake* mistake = find_mistake(plan.plan.name))
    out["mistake"] = {{"meant", mistake->right}, {"what", mistake->what}};
  out["loading"] = name_of(loading_under(job, plan.plan.plan));
  if (!plan.applicable()) out["reason"] = plan.reason();
  out["fits"] = plan.fits;
  if (plan.applicable() && !plan.ranks.empty()) {
    out["cache_given_back"] = plan.cache_given_back;
    put_rank(out, plan.ranks.front());
    if (plan.ranks.size() > 1) {
      out["ranks"] = Json::array();
      for (const auto& rank : plan.ranks) put_rank(out["ranks"].emplace_back(), rank);
    }
    out["communication"] = communication_json(plan.communication);
    if (plan.step_time) {
      out["step_time_lower_bound_seconds"] = plan.step_time->lower_bound;
      out["step_time"] = step_time_json(*plan.step_time);
    }
    out["outside"] = outside_json(plan.outside);
  }
  if (plan.host) out["host"] = host_json(*plan.host);
  out["diagnostics"] = diagnostics_json(plan.diagnostics);
  return out;
}

Json resources_json(const Resources& resources) {
  Json out{{"gpus", resources.gpus},
           {"nodes", resources.nodes},
           {"gpus_per_node", resources.gpus_per_node},
           {"gpu_memory_bytes", resources.gpu_memory.count()}};
  if (resources.gpu_memory_mib) out["gpu_memory_mib"] = *resources.gpu_memory_mib;
  if (resources.host_memory_per_node) out["host_memory_per_node_bytes"] = resources.host_memory_per_node->count();
  return out;
}

}  // namespace qlp
