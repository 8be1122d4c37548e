// The engine: runs the job's steps on the dry device under every plan and settles the books.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "estimate/report.h"
#include "plan/job_spec.h"

namespace qlp {

struct EstimateOptions {
  bool required = false;                 ///< search the least memory with which each plan runs
  std::optional<std::string> only_plan;  ///< the others are left out of the report
  std::int64_t rank = 0;                 ///< that is played; rank 0 holds the most under every runtime
  bool phase_inventories = false;        ///< fill PhaseReport::inventory
  /// Called before each plan with its name and how many of how many are done.
  std::function<void(std::string_view plan, std::size_t done, std::size_t of)> on_progress;
};

/// One plan, without what is said of the job as a whole. `only_plan` and `on_progress` do not matter.
PlanReport estimate_plan(const JobSpec& job, const NamedPlan& plan, const EstimateOptions& options = {});

/// Answers the job under each of its plans. A plan that cannot run is in the report with the reason.
Report estimate(const JobSpec& job, const EstimateOptions& options = {});

}  // namespace qlp
