#include <cmath>

#include "base/text.h"
#include "config/job_sections.h"
#include "config/mesh_reader.h"
#include "plan/gpu_catalogue.h"

namespace qlp {
namespace {

std::optional<GpuSpec> read_gpu(MapReader& map) {
  map.require("gpu", "its name, as nvidia-smi prints it or of the catalogue (qlora-plan gpus); --gpu NAME says it too");
  const auto name = map.text("gpu");
  if (!name) return std::nullopt;
  if (auto gpu = find_gpu(*name)) return gpu;
  const auto owned = gpus_like(*name).empty() ? gpu_names() : gpus_like(*name);
  const std::vector<std::string_view> names(owned.begin(), owned.end());
  if (!gpus_like(*name).empty()) {
    map.refuse("gpu", "unknown-gpu", "'" + name->substr(0, 40) + "' may mean several GPUs", "one of: " + join(names));
    return std::nullopt;
  }
  const bool number = name->find_first_not_of("0123456789") == std::string::npos;
  const auto near = number ? std::nullopt : closest(*name, names);
  map.refuse("gpu", "unknown-gpu", "no GPU of the catalogue is called '" + name->substr(0, 40) + "'",
             number ? "how many there are is --gpus, or cluster.world_size"
             : near ? "did you mean " + std::string(*near) + "?"
                    : "qlora-plan gpus lists them");
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

/// The rest of world_size is data parallel.
void check_mesh(MapReader& map, const Mesh& mesh, std::int64_t world_size) {
  if (world_size % mesh.ranks_of_replica() != 0)
    map.refuse("mesh", "mesh-does-not-divide",
               "tp x cp x pp is " + std::to_string(mesh.ranks_of_replica()) + ", which does not divide world_size, " +
                   std::to_string(world_size));
  else if (world_size / mesh.pp % mesh.ep != 0 || mesh.ep % (mesh.ep > 1 ? mesh.tp : 1) != 0)
    map.refuse("mesh", "mesh-does-not-divide",
               "ep is " + std::to_string(mesh.ep) + ": expected a multiple of tp that divides the ranks of a stage");
}

}  // namespace

ClusterSpec read_cluster_section(const Section& where, const LaunchDefaults& defaults, Findings& findings) {
  ClusterSpec spec;
  if (!where.node) {
    findings.error("missing-key", where.place, "cluster is missing: it needs at least gpu, which --gpu NAME says too");
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
  spec.world_size = map.integer_or("world_size", {1, kMostRanks}, defaults.world_size);
  spec.mesh = read_mesh(map, defaults.mesh);
  check_mesh(map, spec.mesh, spec.world_size);
  spec.gpus_per_node = map.integer_or("gpus_per_node", {1, 1024}, defaults.gpus_per_node);
  spec.intra_node_bandwidth = map.rate("intra_node_bandwidth");
  spec.inter_node_bandwidth = map.rate("inter_node_bandwidth").value_or(kInterNodeBandwidth);
  if (spec.world_size > spec.gpus_per_node && !map.has("inter_node_bandwidth"))
    map.default_used("inter_node_bandwidth", exact_rate(kInterNodeBandwidth));
  if (const auto used = map.size("used_by_others")) spec.used_by_others = *used;
  if (!map.has("used_by_others")) map.default_used("used_by_others", "0B");
  const auto margin = map.percent("margin");
  if (!map.has("margin")) map.default_used("margin", exact_percent(spec.margin));
  spec.margin = margin.value_or(spec.margin);
  if (spec.margin >= 1) map.refuse("margin", "out-of-range", "out of range: expected less than 100%");
  spec.host_memory = map.size("host_memory");
  if (!map.has("host_memory")) map.default_used("host_memory", "host memory decides no verdict");
  map.finish();
  return spec;
}

}  // namespace qlp
