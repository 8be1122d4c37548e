// What a plan takes as a request to a scheduler: GPUs, nodes, memory of each GPU on the scale that the scheduler goes
// by, memory of a node.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "estimate/report.h"

namespace qlp {

enum class Scheduler : std::uint8_t { slurm, kubernetes, htcondor };

/// slurm: #SBATCH lines (which cannot ask for memory of a GPU: its type is named, the memory a remark). kubernetes: the
/// resources and the node affinity of a pod for each node, as YAML (the label is GPU Feature Discovery's, in MiB).
/// htcondor: lines of a submit description. Refused where the report's one plan does not fit.
Result<std::string> scheduler_request(Scheduler scheduler, const Report& report);

}  // namespace qlp
