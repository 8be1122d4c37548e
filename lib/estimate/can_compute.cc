#include "estimate/can_compute.h"

#include <string>
#include <utility>
#include <variant>

#include "base/refusal.h"
#include "estimate/zero_plan.h"
#include "plan/loading.h"
#include "plan/stack_profile.h"

namespace qlp {
namespace {

class Refusals {
 public:
  void add_if(bool applies, const std::string& what, std::string key_path, std::string hint) {
    if (!applies) return;
    found.push_back(refusal("cannot-compute", "a run for real does not do this yet: " + what, std::move(key_path),
                            std::move(hint) + ", or predict it with estimate"));
  }
  Diagnostics found;
};

bool computes(const OptimizerKind& kind) {
  // radam trains nothing in its first five steps (silent_sgd_phase)
  const auto* free = std::get_if<ScheduleFree>(&kind);
  // and no kernel packs two codes in a byte.
  const auto* torchao = std::get_if<Torchao>(&kind);
  return (!free || free->base != ScheduleFree::Base::radam) && (!torchao || torchao->bits == 8);
}

/// Whose arithmetic no kernel has.
bool computes_on_cpu_alone(const OptimizerKind& kind) {
  const auto* bnb = std::get_if<Bitsandbytes>(&kind);
  return std::holds_alternative<StableAdamW>(kind) ||
         (bnb && (bnb->is_paged || bnb->algorithm != Bitsandbytes::Algorithm::adamw));
}

void check_zero(const JobSpec& job, const Zero& plan, Refusals& refusals) {
  refusals.add_if(job.training.fp16, "DeepSpeed's own scaling of the loss in float16", "training.fp16", "use bf16");
  refusals.add_if(plan.bf16.check_grad_overflow, "the check of gradients for overflow", "plans", "leave it out");
  // DeepSpeed then reduces a copy of what it adds up, and drops the result.
  const bool casts = zero_module_dtype(job.training, plan).has_value();
  refusals.add_if(plan.stage == 1 && !casts && job.dtype != DType::float32,
                  "ZeRO-1 on weights in 16 bits without mixed precision", "training", "set bf16");
}

/// The pairs of token and expert of all ranks that share experts divide by the experts.
bool routes_evenly(const JobSpec& job) {
  if (!job.model.experts) return true;
  const Mesh& mesh = job.cluster.mesh;
  const std::int64_t tokens = job.training.micro_batch_size * job.training.seq_len;
  const std::int64_t pairs = tokens * job.model.experts->num_experts_per_tok * mesh.ep;
  return tokens % mesh.tp == 0 && pairs % (mesh.tp * job.model.experts->num_experts) == 0;
}

void check_plan(const JobSpec& job, const ShardingPlan& plan, Refusals& refusals) {
  if (const auto* zero = std::get_if<Zero>(&plan)) check_zero(job, *zero, refusals);
  if (std::holds_alternative<Fsdp2>(plan))
    // accelerate sends no weights where some are in 4 bits (fsdp_utils.py, fsdp2_prepare_model: model_has_params4bit).
    refusals.add_if(load_path(job, plan) == LoadPath::through_gpu,
                    "4-bit weights that the first rank alone has read, and nobody sends under FSDP2", "model.loading",
                    "set loading to gpu");
}

/// What has no kernels there, or NCCL cannot send.
void check_on_gpu(const JobSpec& job, Refusals& refusals) {
  constexpr const char* kHint = "verify it with --device cpu";
  const Mesh& mesh = job.cluster.mesh;
  // The null GPU could not say how many tokens come.
  refusals.add_if(mesh.ep > 1, "experts that ranks share on GPUs", "cluster.mesh.ep", kHint);
  refusals.add_if(computes_on_cpu_alone(job.training.optimizer.kind), job.training.optimizer.name + " on GPUs",
                  "training.optimizer", kHint);
}

}  // namespace

Diagnostics check_can_compute(const JobSpec& job, const ShardingPlan& plan, VerifyDevice device) {
  Refusals refusals;
  const Mesh& mesh = job.cluster.mesh;
  refusals.add_if(mesh.ep > 1 && !routes_evenly(job),
                  "tokens of a batch that all experts cannot have evenly, which is what is predicted",
                  "training.micro_batch_size",
                  "let micro_batch_size x seq_len x experts of a token x ep / tp be a "
                  "multiple of the experts, and micro_batch_size x seq_len one of tp");
  refusals.add_if(mesh.pp > 1 && job.training.fp16, "float16 in stages of a pipeline, which scale no loss",
                  "training.fp16", "use bf16");
  refusals.add_if(job.model.experts && StackProfile(job.stack).lists_experts(),
                  "experts that run one by one, on as many tokens as come", "stack.transformers",
                  "use transformers 5.23 or newer");
  refusals.add_if(!computes(job.training.optimizer.kind), job.training.optimizer.name, "training.optimizer",
                  "use adamw_torch, adamw_8bit, or another of torch's own");
  check_plan(job, plan, refusals);
  if (device != VerifyDevice::cpu) check_on_gpu(job, refusals);
  return refusals.found;
}

}  // namespace qlp
