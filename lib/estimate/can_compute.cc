#include "estimate/can_compute.h"

#include <string>
#include <utility>
#include <variant>

#include "base/overloaded.h"
#include "base/refusal.h"
#include "estimate/zero_plan.h"
#include "plan/loading.h"

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
  return std::visit(Overloaded{[](const Bitsandbytes& bnb) {
                                 return bnb.algorithm == Bitsandbytes::Algorithm::adamw && !bnb.is_paged;
                               },
                               // radam trains nothing in its first five steps (silent_sgd_phase)
                               [](const ScheduleFree& free) { return free.base != ScheduleFree::Base::radam; },
                               [](const StableAdamW&) { return false; }, [](const auto&) { return true; }},
                    kind);
}

void check_zero(const JobSpec& job, const Zero& plan, Refusals& refusals) {
  refusals.add_if(plan.bf16.check_grad_overflow, "the check of gradients for overflow", "plans", "leave it out");
  // DeepSpeed then reduces a copy of what it adds up, and drops the result.
  const bool casts = zero_module_dtype(job.training, plan).has_value();
  refusals.add_if(plan.stage == 1 && !casts && job.dtype != DType::float32,
                  "ZeRO-1 on weights in 16 bits without mixed precision", "training", "set bf16");
}

void check_plan(const JobSpec& job, const ShardingPlan& plan, Refusals& refusals) {
  if (const auto* zero = std::get_if<Zero>(&plan)) check_zero(job, *zero, refusals);
  if (std::holds_alternative<Fsdp2>(plan))
    // accelerate sends no weights where some are in 4 bits (fsdp_utils.py, fsdp2_prepare_model: model_has_params4bit).
    refusals.add_if(load_path(job, plan) == LoadPath::through_gpu,
                    "4-bit weights that the first rank alone has read, and nobody sends under FSDP2", "model.loading",
                    "set loading to gpu");
  // Each rank would find overflow for itself, and leave the others a step behind.
  const bool whole = std::holds_alternative<Single>(plan) || std::holds_alternative<Ddp>(plan);
  refusals.add_if(job.training.fp16 && !whole, "float16 with gradients in parts", "training.fp16", "use bf16");
}

/// What has no kernels there, or NCCL cannot send.
void check_on_gpu(const JobSpec& job, const ShardingPlan& plan, Refusals& refusals) {
  constexpr const char* kHint = "verify it with --device cpu";
  refusals.add_if(job.model.experts.has_value(), "mixtures of experts on GPUs", "model", kHint);
  refusals.add_if(job.quantization && job.quantization->eight_bit(), "LLM.int8 on GPUs", "quantization", kHint);
  // Sends wait for their receivers there, and 1F1B's neighbours send to each other.
  refusals.add_if(job.cluster.mesh.pp > 1, "stages of a pipeline on GPUs", "cluster.mesh.pp", kHint);
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  refusals.add_if(fsdp2 && fsdp2->cpu_offload, "FSDP2 with cpu_offload on GPUs, whose norms are summed on the host",
                  "plans", kHint);
}

}  // namespace

Diagnostics check_can_compute(const JobSpec& job, const ShardingPlan& plan, VerifyDevice device) {
  Refusals refusals;
  const TrainingSpec& training = job.training;
  const Mesh& mesh = job.cluster.mesh;
  refusals.add_if(mesh.tp > 1 || mesh.cp > 1 || mesh.ep > 1, "layers, sequences or experts that ranks share",
                  "cluster.mesh", "use stages, or data parallel ranks");
  // Each stage has the norm of its own gradients.
  refusals.add_if(mesh.pp > 1 && training.max_grad_norm > 0, "clipping over stages of a pipeline",
                  "training.max_grad_norm", "set it to 0");
  refusals.add_if(job.model.rope == RopeKind::longrope, "longrope's frequencies", "model", "use a model without");
  refusals.add_if(!computes(training.optimizer.kind), training.optimizer.name, "training.optimizer",
                  "use adamw_torch, adamw_8bit, or another of torch's own");
  check_plan(job, plan, refusals);
  if (device != VerifyDevice::cpu) check_on_gpu(job, plan, refusals);
  return refusals.found;
}

}  // namespace qlp
