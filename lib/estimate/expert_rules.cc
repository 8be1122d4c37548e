#include "estimate/expert_rules.h"

#include <string>
#include <variant>

#include "base/refusal.h"
#include "model/family_design.h"
#include "model/target_matching.h"

namespace qlp {

namespace {

bool adapts_experts(const JobSpec& job) { return job.adapter && adapts_any_experts(*job.adapter, job.model); }

/// Experts that run one by one.
Diagnostics check_looped(const JobSpec& job) {
  const std::int64_t pairs =
      job.training.micro_batch_size * job.training.seq_len * job.model.experts->num_experts_per_tok;
  if (pairs < job.model.experts->num_experts)
    return {refusal("experts-without-tokens",
                    "a micro batch sends tokens to " + std::to_string(pairs) + " of " +
                        std::to_string(job.model.experts->num_experts) +
                        " experts, and what is left of the others is not planned",
                    "training.seq_len", "longer sequences, or more of them")};
  return {};
}

}  // namespace

Diagnostics check_experts(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack) {
  if (!job.model.experts) return {};
  if (design_of(job.model.family).biased_stacks && stack.models.loops_over_experts() && adapts_experts(job))
    return {refusal("expert-adapters-looped",
                    "PEFT folds its update into a stack anew for every expert that transformers 4 runs, which is not "
                    "planned",
                    "adapter.target_parameters", "transformers 5, or leave the experts out")};
  if (stack.models.loops_over_experts()) return check_looped(job);
  if (!stack.models.fuses_experts())
    return {refusal("experts-by-loop", "how this version of transformers runs stacks of experts was not looked at",
                    "stack.transformers", "5.23 and newer, or 4.57 and older")};
  if (!stack.torch.groups_matrices() || job.cluster.gpu.compute_capability < 80)
    return {refusal("grouped-mm",
                    "transformers multiplies the experts one by one on this torch or GPU, not planned yet",
                    "stack.torch", "torch 2.10 and newer on compute capability 8.0 and newer have grouped_mm")};
  if (job.adapter && !stack.peft.adapts_expert_parameters())
    return {refusal("expert-adapters",
                    "what this version of PEFT does with the experts of transformers 5 is not known "
                    "here",
                    "stack.peft", "0.21 is")};
  if (!adapts_experts(job)) return {};
  const std::string hint = "leave the experts and the router out of target_modules, or take ddp";
  // Seen with transformers 5.24 and PEFT 0.21 (lora/layer.py, ParamWrapper).
  if (job.cluster.mesh.tp > 1)
    return {refusal("expert-adapters-mesh",
                    "PEFT 0.21 stops at adapters on experts and routers that tensor parallelism shares: 'ParamWrapper' "
                    "object has no attribute 'weight'",
                    "adapter.target_modules", "leave the experts and the router out of target_modules")};
  if (job.cluster.mesh.ep > 1)
    return {refusal("expert-adapters-mesh",
                    "PEFT 0.21 folds plain updates into experts that are DTensors, where torch stops: "
                    "'aten.baddbmm.default got mixed torch.Tensor and DTensor'",
                    "adapter.target_modules", "leave the experts and the router out of target_modules")};
  if (std::holds_alternative<Fsdp1>(plan))  // "inconsistent tensor size", seen in torch 2.14 with PEFT 0.21
    return {refusal("expert-adapters-fsdp1",
                    "PEFT reads the matrices beside experts outside of their FSDP1 unit, where they are flat",
                    "adapter.target_modules", hint)};
  if (!std::holds_alternative<Single>(plan) && !std::holds_alternative<Ddp>(plan))
    return {refusal("expert-adapters-sharded", "adapters on experts and routers are planned on single and ddp only",
                    "adapter.target_modules", hint)};
  return {};
}

Diagnostics expert_warnings(const JobSpec& job) {
  if (!job.model.experts) return {};
  const StackProfile stack(job.stack);
  Diagnostics found;
  if (stack.models.loops_over_experts()) {
    Diagnostic note;
    note.severity = Severity::note, note.code = "even-routing", note.key_path = "model";
    note.message =
        "experts run one by one, and routers are taken to send tokens to all evenly: what is kept for the backward "
        "pass is the same however they go, what one expert works with grows with the tokens that it gets";
    found.push_back(note);
  }
  if (!job.quantization || stack.models.lists_experts(job.model.family)) return found;
  Diagnostic warning;
  warning.severity = Severity::warning;
  warning.code = "experts-not-quantized";
  warning.message =
      "experts and routers stay in " + std::string(name_of(job.dtype)) +
      ": transformers quantizes linear layers only (integrations/bitsandbytes.py, replace_with_bnb_linear)";
  warning.key_path = "quantization";
  found.push_back(warning);
  return found;
}

}  // namespace qlp
