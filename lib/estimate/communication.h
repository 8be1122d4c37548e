// Bytes on the wire: what collectives send, and how a group of ranks lies on nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/step_report.h"
#include "estimate/step_work.h"

namespace qlp {

/// What a rank sends in a collective among `ranks` if each element passes every link once, as it does in a ring:
/// (n - 1) / n of the whole in an all_gather or reduce_scatter, twice that in an all_reduce ("Bus bandwidth" in
/// doc/PERFORMANCE.md of NVIDIA's nccl-tests, commit 03a204a). Rounded up. In a broadcast it is the root's, or that of
/// a rank which hands on.
std::uint64_t sent_bytes(Collective kind, std::int64_t ranks, std::uint64_t whole);

/// How many of a group's ranks share a node, and on how many nodes they are.
struct GroupLayout {
  std::int64_t ranks_on_node = 1;
  std::int64_t nodes = 1;
};
GroupLayout layout_of(const RankGroup& group, std::int64_t gpus_per_node);

/// The books of a step.
Communication communication_of(const std::vector<StepPhase>& step);

}  // namespace qlp
