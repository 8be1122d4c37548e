#include "estimate/family_rules.h"

#include <string>

#include "base/refusal.h"
#include "plan/job_names.h"

namespace qlp {

Diagnostics check_family(const JobSpec& job, const StackProfile& stack) {
  if (stack.knows(job.model.family)) return {};
  return {refusal("family-not-in-stack",
                  "this transformers does not recognize the architecture " + std::string(name_of(job.model.family)),
                  "stack.transformers", to_string(StackProfile::first_with(job.model.family)) + " or newer")};
}

}  // namespace qlp
