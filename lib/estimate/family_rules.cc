#include "estimate/family_rules.h"

#include <string>

#include "base/refusal.h"
#include "model/family_design.h"
#include "plan/job_names.h"

namespace qlp {
namespace {

/// modeling_gemma.py, GemmaModel.forward: no **kwargs in 4.48.1, which 4.48.3 has.
bool lacks_item_counts(const StackVersions& stack) {
  return stack.transformers >= Version{4, 48, 0} && stack.transformers < Version{4, 48, 3};
}

}  // namespace

Diagnostics check_family(const JobSpec& job, const StackProfile& stack) {
  const ModelSpec& model = job.model;
  const LookedAt looked_at = design_of(model.family).looked_at;
  Diagnostics found;
  if (!stack.models.knows(model.family))
    found.push_back(
        refusal("family-not-in-stack",
                "this transformers does not recognize the architecture " + std::string(name_of(model.family)),
                "stack.transformers", to_string(ModelStack::first_with(model.family)) + " or newer"));
  else if (!stack.models.has_masking_utils() && looked_at == LookedAt::from_4_53)
    found.push_back(refusal("family-in-old-stack",
                            "how this transformers writes " + std::string(name_of(model.family)) +
                                ", whose masks each model made by itself, was not looked at",
                            "stack.transformers", "4.53 or newer"));
  else if (!stack.models.has_attention_functions() && looked_at == LookedAt::from_4_48)
    found.push_back(refusal("family-in-old-stack",
                            "how this transformers writes " + std::string(name_of(model.family)) +
                                ", whose attention is a class for each kernel, was not looked at",
                            "stack.transformers", "4.48 or newer"));
  else if (model.family == Family::gemma && lacks_item_counts(job.stack))
    found.push_back(refusal("gemma-item-counts",
                            "the Trainer hands Gemma how many tokens a batch has, and its model does not take that: "
                            "'GemmaModel.forward() got an unexpected keyword argument 'num_items_in_batch''",
                            "stack.transformers", "4.48.3 or newer"));
  else if (model.family == Family::gpt_oss &&
           (job.dtype == DType::float16 || (job.quantization && stack.models.keeps_norms_beside_4bit())))
    found.push_back(refusal("norms-in-float32",
                            "transformers loads the norms of this family in float32 beside weights in float16 or, "
                            "before 5.0, in 4 bits (_keep_in_fp32_modules), which is not planned",
                            "model.dtype", "bfloat16, and transformers 5 for a quantized base"));
  else if (model.rope == RopeKind::longrope && stack.models.leaves_longrope_on_host() &&
           job.training.seq_len <= model.original_max_position_embeddings.value_or(model.max_position_embeddings))
    found.push_back(
        refusal("longrope-on-host",
                "this transformers leaves the rotary frequencies of short batches on the host: 'Expected all "
                "tensors to be on the same device, but found at least two devices, cpu and cuda:0'",
                "stack.transformers", "4.48.3 or newer"));
  return found;
}

}  // namespace qlp
