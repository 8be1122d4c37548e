// Which rank a process is, where torchrun, srun or mpirun started it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/result.h"

namespace qlp {

/// One process of many that somebody else started.
struct LaunchedRank {
  std::string launcher;  ///< "torchrun", "Slurm", "Open MPI", "MPICH"
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::int64_t local_rank = 0;
  std::int64_t local_size = 1;  ///< ranks of this machine; world_size where the launcher does not say
  std::string run;              ///< what tells this run from others of the same launcher; may be empty
  friend bool operator==(const LaunchedRank&, const LaunchedRank&) = default;
};

/// None where nobody started it as a rank. Errors: variables that contradict each other or are no numbers.
Result<std::optional<LaunchedRank>> launched_rank(const Environment& environment);

}  // namespace qlp
