#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "config/job_sections.h"
#include "plan/catalogue.h"
#include "plan/gpu_catalogue.h"

namespace qlp {
namespace {

constexpr std::int64_t kMostRanks = 65536;

std::optional<GpuSpec> read_gpu(MapReader& map) {
  map.require("gpu", "its name, as nvidia-smi prints it or of the catalogue (qlora-plan gpus)");
  const auto name = map.text("gpu");
  if (!name) return std::nullopt;
  if (auto gpu = find_gpu(*name)) return gpu;
  const auto owned = gpus_like(*name).empty() ? gpu_names() : gpus_like(*name);
  const std::vector<std::string_view> names(owned.begin(), owned.end());
  if (!gpus_like(*name).empty()) {
    map.refuse("gpu", "unknown-gpu", "'" + name->substr(0, 40) + "' may mean several GPUs", "one of: " + join(names));
    return std::nullopt;
  }
  const auto near = closest(*name, names);
  map.refuse("gpu", "unknown-gpu", "no GPU of the catalogue is called '" + name->substr(0, 40) + "'",
             near ? "did you mean " + std::string(*near) + "?" : "qlora-plan gpus lists them");
  return std::nullopt;
}

/// "9.0" as 90.
std::optional<std::uint32_t> read_compute_capability(MapReader& map) {
  const auto value = map.number("compute_capability", {5, 20});
  if (!value) return std::nullopt;
  const auto tenths = std::lround(*value * 10);
  if (std::abs(static_cast<double>(tenths) - *value * 10) < 1e-6) return static_cast<std::uint32_t>(tenths);
  map.refuse("compute_capability", "bad-value", "expected a version like 9.0");
  return std::nullopt;
}

constexpr std::string_view kNoOffload = "offload to the host is not planned yet";
constexpr std::array<NotSupported, 3> kDdpKeys{{
    {"find_unused_parameters", "it changes no memory: leave it out"},
    {"static_graph", "not planned yet"},
    {"broadcast_buffers", "it changes no memory: leave it out"},
}};
constexpr std::array<NotSupported, 5> kFsdp1Keys{{
    {"cpu_offload", kNoOffload},
    {"backward_prefetch", "BACKWARD_PRE is planned, accelerate's default"},
    {"forward_prefetch", "off is planned, accelerate's default"},
    {"sharding_strategy", "the name of the plan says it"},
    {"auto_wrap_policy", "every decoder layer is wrapped, as accelerate is told to"},
}};
constexpr std::array<NotSupported, 4> kFsdp2Keys{{
    {"cpu_offload", kNoOffload},
    {"offload_policy", kNoOffload},
    {"reshard_after_forward", "the name of the plan says it: fsdp2 or fsdp2-no-reshard"},
    {"use_orig_params", "it is an option of FSDP1"},
}};

/// Reads the options of one plan into it; which exist depends on the runtime.
struct OptionReader {
  MapReader& map;

  void operator()(Single&) const { map.finish(); }
  void operator()(Ddp& ddp) const {
    constexpr std::int64_t kLargestBucket = 1 << 20;
    ddp.bucket_cap_mb = map.integer_or("bucket_cap_mb", {1, kLargestBucket}, ddp.bucket_cap_mb);
    ddp.gradient_as_bucket_view = map.boolean_or("gradient_as_bucket_view", ddp.gradient_as_bucket_view);
    map.finish(kDdpKeys);
  }
  void operator()(Fsdp1& fsdp) const {
    fsdp.use_orig_params = map.boolean_or("use_orig_params", fsdp.use_orig_params);
    map.finish(kFsdp1Keys);
  }
  void operator()(Fsdp2& fsdp) const {
    if (fsdp.local_base)
      fsdp.reshard_after_forward = map.boolean_or("reshard_after_forward", fsdp.reshard_after_forward);
    map.finish(kFsdp2Keys);
  }
};

std::optional<NamedPlan> plan_called(const std::string& name, const KeyPlace& at, Findings& findings) {
  if (auto plan = find_plan(name)) return plan;
  for (auto later : kPlansToCome) {
    if (later != name) continue;
    findings.error("not-supported", at, name + " is not supported: this plan is not worked out yet",
                   "use one of " + join(kPlanNames));
    return std::nullopt;
  }
  const auto near = closest(name, kPlanNames);
  findings.error("unknown-plan", at, "no plan is called '" + name.substr(0, 40) + "'",
                 near ? "did you mean " + std::string(*near) + "?" : "plans: " + join(kPlanNames));
  return std::nullopt;
}

}  // namespace

ClusterSpec read_cluster_section(const Section& where, Findings& findings) {
  ClusterSpec spec;
  if (!where.node) {
    findings.error("missing-key", where.place, "cluster is missing: it needs at least gpu");
    return spec;
  }
  MapReader map(where.node, where.place, findings);
  if (auto gpu = read_gpu(map)) spec.gpu = *std::move(gpu);
  if (const auto memory = map.size("memory")) {
    spec.gpu.capacity = *memory;
    spec.gpu.capacity_source = kCapacityOfJob;
    if (*memory == Bytes{}) map.refuse("memory", "out-of-range", "no memory at all: expected more than 0");
  }
  spec.gpu.compute_capability = read_compute_capability(map).value_or(spec.gpu.compute_capability);
  spec.world_size = map.integer_or("world_size", {1, kMostRanks}, 1);
  spec.gpus_per_node = map.integer_or("gpus_per_node", {1, 1024}, 8);
  if (const auto used = map.size("used_by_others")) spec.used_by_others = *used;
  if (!map.has("used_by_others")) map.default_used("used_by_others", "0B");
  const auto margin = map.percent("margin");
  if (!map.has("margin")) map.default_used("margin", exact_percent(spec.margin));
  spec.margin = margin.value_or(spec.margin);
  if (spec.margin >= 1) map.refuse("margin", "out-of-range", "out of range: expected less than 100%");
  map.finish();
  return spec;
}

std::vector<NamedPlan> read_plans_section(const Section& where, Findings& findings) {
  std::vector<NamedPlan> plans;
  if (!where.node) {
    findings.note("default-used", where.place, "not given: " + join(kPlanNames));
    for (auto name : kPlanNames) plans.push_back(*find_plan(name));
    return plans;
  }
  const auto& node = *where.node;
  if (node.kind == NodeKind::sequence) {
    for (const auto& item : node.items) {
      const KeyPlace at{where.place.path, item->position};
      const auto name = text_of(*item);
      const bool again =
          name && std::any_of(plans.begin(), plans.end(), [&](const auto& p) { return p.name == *name; });
      if (!name) {
        findings.error("wrong-type", at, "expected the name of a plan, found " + describe(*item));
      } else if (again) {
        findings.error("duplicate-item", at, "'" + *name + "' is listed twice");
      } else if (auto plan = plan_called(*name, at, findings)) {
        plans.push_back(*std::move(plan));
      }
    }
  } else {
    MapReader map(where.node, where.place, findings);
    for (const auto& entry : node.entries) {
      const KeyPlace at{join_path(where.place.path, entry.key), entry.key_position};
      const bool again = std::any_of(plans.begin(), plans.end(), [&](const auto& p) { return p.name == entry.key; });
      map.take(entry.key);
      auto plan = again ? std::nullopt : plan_called(entry.key, at, findings);
      if (!plan) continue;
      const bool given = entry.value->kind != NodeKind::null;
      MapReader options(given ? entry.value.get() : nullptr, at, findings);
      std::visit(OptionReader{options}, plan->plan);
      plans.push_back(*std::move(plan));
    }
    map.finish();
  }
  const bool holds_plans = node.kind == NodeKind::sequence || node.kind == NodeKind::map;
  if (holds_plans && node.entries.empty() && node.items.empty())
    findings.error("bad-value", where.place, "no plan: name at least one, or leave plans out for all");
  return plans;
}

}  // namespace qlp
