// The answer to a job: what every plan takes on each rank, and why. Plain values; report/ turns them into text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/diagnostic.h"
#include "estimate/finding.h"
#include "estimate/host_ledger.h"
#include "estimate/rank_ledger.h"
#include "estimate/step_report.h"
#include "estimate/verification.h"
#include "plan/job_spec.h"
#include "plan/sharding_plan.h"

namespace qlp {

struct PlanReport {
  NamedPlan plan;
  Diagnostics refusals;  ///< why it cannot run; none where it can
  bool applicable() const { return refusals.empty(); }
  std::string reason() const;  ///< the refusals in one sentence, each with its fix
  bool fits = false;
  bool cache_given_back = false;  ///< fits only because PyTorch gives its cache back
  std::vector<RankReport> ranks;  ///< the worst first; one entry where all ranks are alike
  std::vector<OutsideTerm> outside;
  std::optional<HostReport> host;     ///< where rank 0 was played
  Communication communication;        ///< of one rank in an optimizer step
  std::optional<StepTime> step_time;  ///< none where the GPU's rates are unknown
  Diagnostics diagnostics;
};

struct ParameterCounts {
  std::uint64_t total = 0;  ///< adapters included
  std::uint64_t trainable = 0;
};

/// What a scheduler must give the recommended plan.
struct Resources {
  std::int64_t gpus = 0;
  std::int64_t nodes = 0;
  std::int64_t gpus_per_node = 0;
  Bytes gpu_memory;                             ///< on CUDA's scale, margin included
  std::optional<std::uint64_t> gpu_memory_mib;  ///< on nvidia-smi's scale, which labels of machines use
  std::optional<Bytes> host_memory_per_node;
};

struct Report {
  JobSpec job;
  ParameterCounts parameters;
  std::vector<PlanReport> plans;  ///< in the job's order
  std::optional<std::string> recommended;
  std::optional<Resources> resources;            ///< of the recommended plan
  Diagnostics diagnostics;                       ///< of the job: defaults used, warnings
  std::optional<std::vector<Finding>> findings;  ///< of `check`, errors first
  std::optional<Verification> verification;      ///< of `verify`
};

}  // namespace qlp
