#include "report/export_runner.h"

#include <nlohmann/json.hpp>

#include "plan/job_names.h"
#include "plan/loading.h"
#include "report/export_deepspeed.h"
#include "report/job_json.h"
#include "report/json_parts.h"

namespace qlp {

Result<std::string> runner_job(const JobSpec& job, const NamedPlan& plan) {
  nlohmann::ordered_json out{{"job", job_json(job)},
                             {"plan",
                              {{"name", plan.name},
                               {"loading", name_of(loading_under(job.loading, plan.plan))},
                               {"options", plan_options_json(plan.plan)}}}};
  if (std::holds_alternative<Zero>(plan.plan)) {
    const auto deepspeed = deepspeed_config(plan);
    if (!deepspeed) return Unexpected{deepspeed.error()};
    out["deepspeed"] = nlohmann::ordered_json::parse(*deepspeed);
  }
  return document_text(out);
}

}  // namespace qlp
