// The lower bound for the time of a step, from the peak rates of the catalogue.
#pragma once

#include <optional>
#include <vector>

#include "estimate/step_report.h"
#include "estimate/step_work.h"
#include "plan/job_spec.h"

namespace qlp {

/// The rate of products of operands of this dtype. PyTorch rounds none of float32 to tf32 unless it is asked to.
double flops_of(DType dtype, const GpuRates& rates, bool tf32);

/// Per second between two GPUs of a node, in one direction: the job's, else NVLink's if it joins `gpus` of them, else
/// PCIe's.
double intra_node_bandwidth(const ClusterSpec& cluster, std::int64_t gpus);

/// The least time of one collective. Within a node it is worked out as among the ranks there, between nodes as among
/// nodes that have a port for each of those: what no algorithm undercuts. An NVSwitch of the third generation on
/// (Hopper, NVLink SHARP) sums in the switch, so that an all_reduce sends everything once.
double least_seconds(const CollectiveEvent& event, const ClusterSpec& cluster);

/// None where the catalogue has no rates of the GPU.
std::optional<StepTime> step_time(const std::vector<StepPhase>& step, const ClusterSpec& cluster, bool tf32);

}  // namespace qlp
