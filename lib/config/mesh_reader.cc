#include "config/mesh_reader.h"

#include "plan/job_names.h"

namespace qlp {

Mesh read_mesh(MapReader& map, const Mesh& fallback) {
  Mesh mesh = fallback;
  const auto* node = map.take("mesh");
  if (!node) return mesh;
  MapReader axes(node, map.place_of("mesh"), map.findings());
  mesh.tp = axes.integer_or("tp", {1, kMostRanks}, fallback.tp);
  mesh.cp = axes.integer_or("cp", {1, kMostRanks}, fallback.cp);
  mesh.pp = axes.integer_or("pp", {1, kMostRanks}, fallback.pp);
  mesh.ep = axes.integer_or("ep", {1, kMostRanks}, fallback.ep);
  mesh.cp_comm_strategy = axes.choice<CpCommStrategy>("cp_comm_strategy").value_or(mesh.cp_comm_strategy);
  axes.finish();
  return mesh;
}

}  // namespace qlp
