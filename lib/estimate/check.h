// Rules about a job under one plan, for people and for CI: what is set up wrongly, or takes the most for no good
// reason.
#pragma once

#include <array>
#include <string_view>

#include "estimate/report.h"
#include "plan/job_spec.h"

namespace qlp {

/// The codes of the rules. A finding may also bear the code with which a plan refuses the job.
inline constexpr std::array<std::string_view, 16> kRuleCodes{
    "float-base-unsharded",
    "adapter-unsharded",
    "quantized-base-replicated",
    "quantized-base-sharded-without-float-storage",
    "mixed-fsdp1-unit",
    "no-wrap-policy",
    "bnb-optimizer-on-dtensor",
    "fp32-upcast-of-frozen-base",
    "modules-to-save-in-float32",
    "logits-dominate",
    "adapter-activations-dominate",
    "layer-inputs-dominate",
    "no-gradient-checkpointing",
    "over-budget",
    "host-over-budget",
    "adapter-name-unmatched",
};

/// The estimate of the job under `plan` with its findings, errors first. A fix is run on the dry device before it is
/// offered.
Report check(const JobSpec& job, const NamedPlan& plan);

}  // namespace qlp
