// What the processes of a node take of its memory. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "estimate/rank_ledger.h"

namespace qlp {

/// Host memory of one process when it holds the most.
struct HostRank {
  std::string phase;           ///< of the peak: "load", "micro1.backward", ...
  Bytes peak;                  ///< tensors in pageable memory, and blocks of pinned memory
  Bytes pinned;                ///< the part that is page-locked, kept free blocks included
  Bytes mapped;                ///< most of checkpoint files that it has mapped; not in `peak`
  CategoryBytes categories{};  ///< of the tensors; pinned blocks are larger
};

struct HostReport {
  HostRank rank0;                  ///< the first process of each node
  std::optional<HostRank> others;  ///< absent where they hold the same
  std::int64_t processes = 1;      ///< of a node, one for each GPU that is used
  Bytes process;                   ///< of each process beside its tensors
  Bytes per_node;                  ///< sum over the processes of a node, in the phase in which it is largest
  std::string per_node_phase;
  Bytes page_cache;  ///< files that the processes of a node share; the system may drop them, so not in `per_node`
};

}  // namespace qlp
