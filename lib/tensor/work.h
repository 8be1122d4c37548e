// What a run asks of the hardware beside memory to live in: collectives, copies between host and GPU, arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace qlp {

/// Communication between ranks, by the names of torch.distributed. A message is recorded on both of its ends.
enum class Collective : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  send,
  recv,
};
inline constexpr std::array<std::string_view, 10> kCollectiveNames{
    "all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce",
    "gather",     "scatter",        "all_to_all", "send",      "recv"};
constexpr std::string_view name_of(Collective kind) { return kCollectiveNames[static_cast<std::size_t>(kind)]; }

/// The axis of the device mesh along which ranks form a group; `world`: all ranks of the job.
enum class MeshAxis : std::uint8_t { world, dp_replicate, dp_shard, tp, cp, pp, ep };
inline constexpr std::array<std::string_view, 7> kMeshAxisNames{"world", "dp_replicate", "dp_shard", "tp",
                                                                "cp",    "pp",           "ep"};
constexpr std::string_view name_of(MeshAxis axis) { return kMeshAxisNames[static_cast<std::size_t>(axis)]; }

/// The ranks of a communicator: `size` of them, `stride` apart in the job's numbering.
struct RankGroup {
  MeshAxis axis = MeshAxis::world;
  std::int64_t size = 1;
  std::int64_t stride = 1;
  friend bool operator==(const RankGroup&, const RankGroup&) = default;
};

/// One collective that this rank takes part in. `bytes` are those of the whole: what an all_gather or gather gives,
/// what a reduce_scatter or scatter takes, the one tensor of the others (all_to_all: this rank's).
struct CollectiveEvent {
  Collective kind = Collective::all_reduce;
  RankGroup group;
  std::uint64_t bytes = 0;
};

/// Of matrix products, 2 m n k each, by the dtype of their operands (DType as index).
using Operations = std::array<double, kDTypes.size()>;

/// The work of one rank in one phase of the run.
struct PhaseWork {
  std::vector<CollectiveEvent> collectives;  ///< in order; those of a single rank are left out
  std::uint64_t host_to_device_bytes = 0;    ///< over PCIe
  std::uint64_t device_to_host_bytes = 0;
  Operations operations{};
  std::uint64_t memory_bytes = 0;  ///< that are read from or written to the GPU's memory at least
};

}  // namespace qlp
