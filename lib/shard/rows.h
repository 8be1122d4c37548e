// How many rows of a tensor a rank has (torch.chunk: torch/distributed/tensor/placement_types.py, Shard).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/rounding.h"

namespace qlp {

/// One place among ranks that share something.
struct RankShare {
  std::int64_t ranks = 1, rank = 0;
};

struct Rows {
  std::int64_t padded = 0;  ///< on all ranks alike
  std::int64_t own = 0;     ///< the last ranks have fewer, or none
};

constexpr Rows rows_of(std::int64_t rows, std::int64_t ranks, std::int64_t rank) {
  const std::int64_t padded = ceil_div(rows, ranks);
  return {padded, std::clamp(rows - padded * rank, std::int64_t{0}, padded)};
}

}  // namespace qlp
