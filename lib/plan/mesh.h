// Parallelism within a replica of the model, in accelerate's words (ParallelismConfig); what is left of the world is
// data parallel, which the plans are about.
#pragma once

#include <cstdint>

namespace qlp {

/// cp_comm_strategy: how keys and values reach the ranks that share a sequence.
enum class CpCommStrategy : std::uint8_t { allgather, alltoall };

struct Mesh {
  std::int64_t tp = 1;  ///< ranks that share each layer
  std::int64_t cp = 1;  ///< ranks that share each sequence
  std::int64_t pp = 1;  ///< stages of consecutive layers
  std::int64_t ep = 1;  ///< ranks that share the experts; taken from those of the other axes
  CpCommStrategy cp_comm_strategy = CpCommStrategy::allgather;
  friend bool operator==(const Mesh&, const Mesh&) = default;

  /// Ranks that hold one replica.
  std::int64_t ranks_of_replica() const { return tp * cp * pp; }
};

/// Where a rank stands: stages are outermost, ranks that share layers lie side by side (accelerate
/// parallelism_config.py, mesh_dim_names; torchtitan parallel_dims.py puts pp first).
struct MeshPlace {
  std::int64_t pp = 0, dp = 0, tp = 0;
};

constexpr MeshPlace place_in(const Mesh& mesh, std::int64_t world_size, std::int64_t rank) {
  const std::int64_t per_stage = world_size / mesh.pp;
  return {.pp = rank / per_stage, .dp = rank % per_stage / mesh.tp, .tp = rank % mesh.tp};
}

}  // namespace qlp
