#include "estimate/optimizer_rules.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/refusal.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/low_rank_rules.h"
#include "estimate/muon_rules.h"
#include "estimate/weight_list.h"
#include "estimate/zero_plan.h"
#include "plan/loading.h"

namespace qlp {
namespace {

constexpr std::string_view kKey = "training.optimizer";

/// fully_shard and tensor parallelism give the optimizer DTensors.
void check_dtensors(const NamedOptimizer& optimizer, Diagnostics& refusals) {
  const std::string key_path(kKey);
  const auto* galore = std::get_if<GaLore>(&optimizer.kind);
  if (std::holds_alternative<Bitsandbytes>(optimizer.kind) || (galore && galore->base == GaLore::Base::adamw_8bit))
    refusals.push_back(refusal("bnb-optimizer-on-dtensor",
                               "bitsandbytes' optimizers do not take the DTensors that are trained here: 'Operator "
                               "bitsandbytes.optimizer_update_32bit.default does not have a sharding strategy "
                               "registered' (bitsandbytes 1633)",
                               key_path, "take adamw_torch_8bit (torchao's), adamw_torch, or an fsdp1 plan"));
  if (std::holds_alternative<Adafactor>(optimizer.kind) || (galore && galore->base == GaLore::Base::adafactor))
    refusals.push_back(refusal("adafactor-on-dtensor",
                               "transformers' Adafactor adds the DTensors that are trained here to plain tensors: "
                               "'aten.add_.Tensor: got mixed torch.Tensor and DTensor'",
                               key_path, "take adamw_torch, or an fsdp1 plan"));
}

/// Whole models and adapters whose layers ranks share.
void check_tensor_parallel(const JobSpec& job, const StackProfile& stack, Diagnostics& refusals) {
  const OptimizerKind& kind = job.training.optimizer.kind;
  const auto refuse = [&](const char* code, const char* message) {
    refusals.push_back(refusal(code, message, std::string(kKey), "take adamw_torch, or leave cluster.mesh.tp out"));
  };
  if (std::holds_alternative<StableAdamW>(kind))  // optimi 0.3, stableadamw.py; torch 2.8 and 2.14
    refuse("stable-adamw-under-tp",
           "StableAdamW's Triton kernels go by the addresses of the DTensors that are trained here, which are 0");
  const auto cut = [](const ListedWeight& weight) { return weight.trained && weight.embedding; };
  // Seen of whole models with 8 and 4 bits, not of adapters alone: torchao 0.18 on torch 2.14.
  if (std::holds_alternative<Torchao>(kind) && std::ranges::any_of(list_weights(job, stack.load), cut))
    refuse("torchao-under-tp",
           "torchao's compiled step stops where a cut embedding is trained: 'attempting to run unimplemented "
           "operator/function: func=<OpOverload(op='aten.view', overload='dtype')>'");
}

/// Sums that were made for other parameters.
void check_first_sums(const JobSpec& job, const Fsdp2& plan, Diagnostics& refusals) {
  if (!keeps_first_sums(job, plan)) return;
  const auto refuse = [&](std::string code, std::string message) {
    refusals.push_back(
        refusal(std::move(code), std::move(message), std::string(kKey), "take rmsprop, or an fsdp1 plan"));
  };
  if (job.stack.torch < Version{2, 14, 0})  // optim/adagrad.py, _init_group; seen in 2.14, not in 2.8
    refuse("fsdp2-adagrad",
           "torch's Adagrad makes its sums before accelerate hands it the parameters of FSDP2, and does not find them "
           "again: KeyError 'sum'");
  else if (shards_at_load(job, plan) || job.cluster.mesh != Mesh{} || loads_state_dict(job, plan))
    refuse("fsdp2-adagrad-first-sums",
           "which of the parameters that torch's Adagrad was made for it goes on to hold here is not worked out");
}

/// Which steps in the backward pass.
void check_lomo(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack, Diagnostics& refusals) {
  const auto refuse = [&](std::string code, std::string message, std::string hint) {
    refusals.push_back(refusal(std::move(code), std::move(message), std::string(kKey), std::move(hint)));
  };
  if (const auto* lomo = std::get_if<Lomo>(&job.training.optimizer.kind)) {
    if (std::holds_alternative<Zero>(plan))
      refuse("lomo-zero",
             "accelerate gives the engine's backward pass LOMO's rate, and DeepSpeed takes none: 'got an unexpected "
             "keyword argument 'learning_rate''",
             "take adamw_torch, or plan single");
    else if (job.cluster.mesh != Mesh{})
      refuse("lomo-sharded", "what LOMO does with layers that ranks share is not worked out",
             "take adamw_torch, or leave cluster.mesh out");
    else if (lomo->adaptive && std::holds_alternative<Fsdp2>(plan))
      refuse("adalomo-on-dtensor",
             "AdaLOMO adds the DTensors that are trained here to plain tensors: 'aten.add_.Tensor: got mixed "
             "torch.Tensor and DTensor'",
             "take lomo or adamw_torch");
    if (job.training.fp16)
      refuse("lomo-float16",
             "accelerate gives LOMO's rate to the backward pass of a loss that torch's GradScaler scales, which takes "
             "none: 'Tensor.backward() got an unexpected keyword argument 'learning_rate''",
             "set mixed_precision to bf16");
    if (lomo->adaptive && job.model.experts && !stack.models.lists_experts(job.model.family))
      refuse("adalomo-experts",
             "AdaLOMO takes what is no vector for a matrix, and the experts of this version are stacks of them: what "
             "its sums do there is not worked out",
             "take lomo or adamw_torch");
  }
}

/// DeepSpeed hands it flat partitions. Packing the largest is the peak in 4 bits; torch 2.8 takes 90 MB more for it in
/// the first step of 3 layers of Llama 3.2 1B under ZeRO-3, where Inductor times its kernels, and less afterwards.
void check_under_zero(const NamedOptimizer& optimizer, const Zero& zero, Diagnostics& refusals) {
  const auto* torchao = std::get_if<Torchao>(&optimizer.kind);
  if (!torchao || (torchao->bits == 8 && zero.offload_optimizer.device == OffloadDevice::none)) return;
  refusals.push_back(refusal("torchao-under-zero",
                             "what torchao's compiled steps take under DeepSpeed is worked out for 8 bits without "
                             "offload alone",
                             std::string(kKey), "take adamw_8bit, adamw_torch_8bit without offload, or an fsdp plan"));
}

/// The sums are made like the original parameters, which see the flat parameter in float32 at the first pass only.
void check_flat(const JobSpec& job, const Fsdp1& plan, const StackProfile& stack, Diagnostics& refusals) {
  const bool upcast = job.training.mixed_precision() && plan.use_orig_params && !stack.optimizers.groups_mixed_dtypes();
  const bool in_lists = !plan.cpu_offload;  // on the host each parameter is updated by itself
  if (!std::holds_alternative<Adagrad>(job.training.optimizer.kind) || !upcast || !in_lists) return;
  const auto changes = [](const ListedWeight& weight) { return weight.trained && weight.dtype != DType::float32; };
  if (std::ranges::none_of(list_weights(job, stack.load), changes)) return;
  refusals.push_back(refusal("fsdp1-adagrad-dtypes",
                             "torch's Adagrad makes its sums in the dtype of the model before FSDP1 trains float32: "
                             "'Tensors of the same index must be on the same device and the same dtype'",
                             std::string(kKey), "set use_orig_params to false, or take rmsprop"));
}

/// bitsandbytes has no RMSprop of 32-bit state for gradients in bfloat16 (backends/cuda/ops.py, str2optimizer32bit).
void check_gradients(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack, Diagnostics& refusals) {
  const auto* bnb = std::get_if<Bitsandbytes>(&job.training.optimizer.kind);
  if (bnb == nullptr || bnb->algorithm != Bitsandbytes::Algorithm::rmsprop) return;
  if (std::holds_alternative<Fsdp1>(plan) && job.training.mixed_precision()) return;  // float32 all over
  constexpr std::int64_t kSmallestIn8Bits = 4096;
  const auto weights = list_weights(job, stack.load);
  const bool meets = std::any_of(weights.begin(), weights.end(), [&](const ListedWeight& weight) {
    const bool spared = weight.embedding && stack.optimizers.behaviour().bnb_spares_embeddings;
    const bool wide = bnb->optim_bits == 32 || weight.stored() < kSmallestIn8Bits || spared;
    return weight.trained && weight.dtype == DType::bfloat16 && wide;
  });
  if (meets)
    refusals.push_back(refusal("bnb-rmsprop-bfloat16",
                               "bitsandbytes' RMSprop has no 32-bit state for gradients in bfloat16: "
                               "'Gradient+optimizer bit data type combination not supported'",
                               std::string(kKey), "take adamw_8bit, or train float32 weights"));
}

/// What FSDP leaves on the host the optimizer updates there.
void check_offloaded(const OptimizerKind& kind, const StackProfile& stack, Diagnostics& refusals) {
  const bool plain = std::holds_alternative<AdamW>(kind) || std::holds_alternative<Sgd>(kind) ||
                     std::holds_alternative<RmsProp>(kind) || std::holds_alternative<Adafactor>(kind) ||
                     std::holds_alternative<Adagrad>(kind) || std::holds_alternative<ScheduleFree>(kind) ||
                     std::holds_alternative<GrokAdamW>(kind) || std::holds_alternative<StableAdamW>(kind) ||
                     std::holds_alternative<Lomo>(kind) || std::holds_alternative<Muon>(kind);
  const auto* bnb = std::get_if<Bitsandbytes>(&kind);
  if (bnb && bnb->is_paged && bnb->algorithm == Bitsandbytes::Algorithm::ademamix)
    refusals.push_back(refusal("offloaded-paged-ademamix",
                               "AdEMAMix puts its two averages into pages of a GPU, and parameters on the host have "
                               "none: TypeError in the first step (bitsandbytes optim/ademamix.py, "
                               "_get_state_double_buffer, 0.50)",
                               std::string(kKey), "take ademamix, ademamix_8bit, or leave cpu_offload out"));
  else if (bnb && !stack.optimizers.bnb_steps_on_host())
    refusals.push_back(refusal("offloaded-bitsandbytes", "bitsandbytes before 0.50 updates no parameters on the host",
                               std::string(kKey), "take adamw_torch, or a newer bitsandbytes"));
  else if (const auto* lomo = std::get_if<Lomo>(&kind); lomo && lomo->adaptive)
    refusals.push_back(refusal("offloaded-adalomo",
                               "AdaLOMO has its sums on the GPU, and parameters on the host: 'Expected all tensors to "
                               "be on the same device'",
                               std::string(kKey), "take lomo or adamw_torch, or leave cpu_offload out"));
  else if (!plain && !bnb)
    refusals.push_back(refusal("offloaded-optimizer",
                               "what this optimizer does with parameters on the host is not worked out yet",
                               std::string(kKey), "take adamw_torch, or leave cpu_offload out"));
}

/// Names that came with later versions: TrainingArguments knows them, or stops.
void check_name(const NamedOptimizer& optimizer, const StackProfile& stack, Diagnostics& refusals) {
  const auto missing = [&](std::string message) {
    refusals.push_back(refusal("optimizer-not-in-stack", std::move(message), std::string(kKey), "take a newer stack"));
  };
  const auto* free = std::get_if<ScheduleFree>(&optimizer.kind);
  if (free != nullptr && free->base == ScheduleFree::Base::radam && !stack.optimizers.trainer_has_schedule_free_radam())
    missing("this transformers does not know schedule_free_radam");
  if (std::holds_alternative<Apollo>(optimizer.kind) && !stack.optimizers.trainer_has_apollo())
    missing("transformers knows APOLLO from 4.49 on");
  if (std::holds_alternative<StableAdamW>(optimizer.kind) && !stack.optimizers.trainer_has_stable_adamw())
    missing("transformers knows stable_adamw from 4.54 on");
}

void check_ademamix(const NamedOptimizer& optimizer, const StackProfile& stack, Diagnostics& refusals) {
  const auto* bnb = std::get_if<Bitsandbytes>(&optimizer.kind);
  if (bnb != nullptr && bnb->algorithm == Bitsandbytes::Algorithm::ademamix && !stack.optimizers.bnb_has_ademamix())
    refusals.push_back(
        refusal("bnb-ademamix", "bitsandbytes has AdEMAMix from 0.44 on", std::string(kKey), "take a newer stack"));
}

}  // namespace

Diagnostics check_optimizer(const JobSpec& named, const ShardingPlan& plan, const StackProfile& stack) {
  const auto* zero = std::get_if<Zero>(&plan);
  const JobSpec job = zero ? zero_job(named, *zero) : named;
  Diagnostics refusals;
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  const bool shards = fsdp2 && fsdp2->ignored_params != Fsdp2Ignored::adapter;
  if (shards || job.cluster.mesh.tp > 1) check_dtensors(job.training.optimizer, refusals);
  if (job.cluster.mesh.tp > 1) check_tensor_parallel(job, stack, refusals);
  if (fsdp2) check_first_sums(job, *fsdp2, refusals);
  if (fsdp2 && fsdp2->cpu_offload) check_offloaded(job.training.optimizer.kind, stack, refusals);
  if (const auto* fsdp1 = std::get_if<Fsdp1>(&plan)) {
    check_flat(job, *fsdp1, stack, refusals);
    if (fsdp1->cpu_offload) check_offloaded(job.training.optimizer.kind, stack, refusals);
  }
  if (zero) check_under_zero(job.training.optimizer, *zero, refusals);
  for (Diagnostic& found : check_low_rank(job, plan, stack)) refusals.push_back(std::move(found));
  check_lomo(named, plan, stack, refusals);
  check_gradients(job, plan, stack, refusals);
  if (std::holds_alternative<Muon>(job.training.optimizer.kind))
    for (Diagnostic& found : check_muon(job, plan, stack, kKey)) refusals.push_back(std::move(found));
  check_ademamix(job.training.optimizer, stack, refusals);
  check_name(named.training.optimizer, stack, refusals);
  return refusals;
}

Diagnostics optimizer_warnings(const JobSpec& job, const ShardingPlan& plan) {
  const OptimizerKind& kind = job.training.optimizer.kind;
  Diagnostics warnings;
  const auto warn = [&](std::string code, std::string message, std::string hint) {
    warnings.push_back(refusal(std::move(code), std::move(message), std::string(kKey), std::move(hint)));
    warnings.back().severity = Severity::warning;
  };
  const auto* fsdp1 = std::get_if<Fsdp1>(&plan);
  if ((std::holds_alternative<GaLore>(kind) || std::holds_alternative<Apollo>(kind)) && fsdp1 &&
      !fsdp1->use_orig_params)
    warn("nothing-projected",
         "FSDP1 without the original parameters has none that goes by a name of training.optim_target_modules: the "
         "Trainer has nothing projected, and says nothing",
         "plan ddp, or take adamw_torch");
  if (std::holds_alternative<Lomo>(kind) && std::holds_alternative<Ddp>(plan))
    warn("lomo-own-gradients",
         "LOMO's hooks step by the gradients of each rank, and once more by the averages that DDP makes at the end: "
         "the ranks' weights drift apart, and every gradient is there at once",
         "plan single, or take adamw_torch");
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  if (std::holds_alternative<StableAdamW>(kind) && fsdp2 && fsdp2->ignored_params != Fsdp2Ignored::adapter &&
      !fsdp2->cpu_offload)  // optimi 0.3, utils.py, _default_to_triton; torch 2.8 and 2.14
    warn("stable-adamw-on-dtensor",
         "optimi hands DTensors to its Triton kernels, and the data_ptr() of a DTensor is 0: expect the first step to "
         "fail on a GPU, which was not seen as no kernel runs on a null one",
         "take adamw_torch, or an fsdp1 plan");
  return warnings;
}

}  // namespace qlp
