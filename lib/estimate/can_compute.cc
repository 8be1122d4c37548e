#include "estimate/can_compute.h"

#include <string>
#include <utility>
#include <variant>

#include "base/overloaded.h"
#include "base/refusal.h"

namespace qlp {
namespace {

class Refusals {
 public:
  void add_if(bool applies, std::string what, std::string key_path, std::string hint) {
    if (!applies) return;
    found.push_back(refusal("cannot-compute", "a run for real does not do this yet: " + what, std::move(key_path),
                            std::move(hint) + ", or predict it with estimate"));
  }
  Diagnostics found;
};

bool computes(const OptimizerKind& kind) {
  return std::visit(Overloaded{[](const AdamW&) { return true; }, [](const Sgd&) { return true; },
                               [](const Bitsandbytes& bnb) {
                                 return bnb.algorithm == Bitsandbytes::Algorithm::adamw && !bnb.is_paged;
                               },
                               [](const auto&) { return false; }},
                    kind);
}

void check_plan(const JobSpec& job, const ShardingPlan& plan, Refusals& refusals) {
  refusals.add_if(!std::holds_alternative<Single>(plan), "plans over several ranks", "plans", "use single");
  (void)job;
}

}  // namespace

Diagnostics check_can_compute(const JobSpec& job, const ShardingPlan& plan) {
  Refusals refusals;
  const TrainingSpec& training = job.training;
  const Mesh& mesh = job.cluster.mesh;
  refusals.add_if(mesh.tp > 1 || mesh.cp > 1 || mesh.pp > 1 || mesh.ep > 1, "parallelism beside that over data",
                  "cluster", "use a mesh of data parallel ranks");
  refusals.add_if(job.model.experts.has_value(), "mixtures of experts", "model", "use a dense model");
  refusals.add_if(job.model.rope == RopeKind::longrope, "longrope's frequencies", "model", "use a model without");
  refusals.add_if(training.evaluation.has_value(), "evaluation", "training.evaluation", "leave it out");
  refusals.add_if(training.saves_model, "saving", "training", "leave it out");
  refusals.add_if(!computes(training.optimizer.kind), training.optimizer.name, "training.optimizer",
                  "use adamw_torch, sgd or adamw_8bit");
  check_plan(job, plan, refusals);
  return refusals.found;
}

}  // namespace qlp
