// The rules of `check`, by subject. Each looks at one plan of a job as it was estimated, and says what it finds and
// what might mend it; check.cc runs the fixes.
#pragma once

#include <string>
#include <vector>

#include "estimate/finding.h"
#include "estimate/report.h"
#include "plan/job_spec.h"
#include "plan/stack_profile.h"

namespace qlp {

/// A change to the job that may mend what was found.
struct Fix {
  std::string text;  ///< "set training.loss to liger"
  JobSpec job;
  NamedPlan plan;
};

/// What a rule found, with fixes in the order in which a user would try them.
struct Suspicion {
  Finding finding;
  std::vector<Fix> fixes;
};

struct CheckedPlan {
  const JobSpec& job;
  const NamedPlan& plan;
  const PlanReport& report;  ///< with the inventories of all phases
  StackProfile stack;

  /// Whether it ran; a plan that cannot run has no figures.
  bool ran() const { return report.applicable() && !report.ranks.empty(); }
  const RankReport& rank() const { return report.ranks.front(); }
};

/// A plan that cannot run, by the reason.
std::vector<Suspicion> refusal_rules(const CheckedPlan& checked);
/// Names that an adapter gives and the model has not.
std::vector<Suspicion> name_rules(const CheckedPlan& checked);
/// What is whole on every rank though the plan shards, and units that hold too much.
std::vector<Suspicion> sharding_rules(const CheckedPlan& checked);
/// Weights that are wider than they need to be.
std::vector<Suspicion> dtype_rules(const CheckedPlan& checked);
/// What the training peak is made of.
std::vector<Suspicion> activation_rules(const CheckedPlan& checked);
/// It does not fit, on the GPU or on the host.
std::vector<Suspicion> budget_rules(const CheckedPlan& checked);

}  // namespace qlp
