#include "estimate/parallel_rules.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "base/refusal.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/model_options.h"
#include "estimate/weight_list.h"
#include "model/family_design.h"
#include "model/target_matching.h"

namespace qlp {
namespace {

/// Refusals of a job, one after the other.
struct Rules {
  const JobSpec& job;
  Diagnostics found{};

  void refuse(std::string code, std::string message, std::string hint) {
    found.push_back(refusal(std::move(code), std::move(message), "cluster.mesh", std::move(hint)));
  }
  void divides(std::int64_t of, const char* what) {
    const std::int64_t tp = job.cluster.mesh.tp;
    if (of % tp != 0)
      refuse("tp-does-not-divide", "tp " + std::to_string(tp) + " does not divide " + what + ", " + std::to_string(of),
             "a divisor of it");
  }
};

/// One of the layers whose outputs are joined, by family.
bool joins_outputs_of(const ModelSpec& model, const std::string& layer) {
  if (layer.ends_with("gate_up_proj")) return design_of(model.family).joins_gate_up;
  return joins_heads_under_tp(model.family) && layer.ends_with("qkv_proj") == design_of(model.family).joins_qkv;
}
bool has_dense_layer(const ModelSpec& model) {
  for (std::int64_t layer = 0; layer < model.num_hidden_layers; ++layer)
    if (!model.experts || !model.experts->in_layer(layer)) return true;
  return false;
}

/// transformers distributed/tensor_parallel.py with the plans of its model classes, 5.24; PEFT 0.21, lora/model.py.
void check_tensor_parallel(Rules& rules, const StackProfile& stack) {
  const JobSpec& job = rules.job;
  const ModelSpec& model = job.model;
  if (!stack.models.shards_layers())
    rules.refuse("tp-stack",
                 "tensor parallelism is planned as transformers 5.23 and newer run it, on torch 2.9 and newer",
                 "a newer stack");
  if (joins_heads_under_tp(model.family)) {
    rules.divides(model.num_attention_heads * model.head_dim, "the width of the queries");
    rules.divides(model.num_key_value_heads * model.head_dim, "the width of keys and values");
  } else {
    rules.divides(model.num_attention_heads, "the query heads");
    rules.divides(model.num_key_value_heads, "the heads of keys and values");
  }
  if (has_dense_layer(model)) rules.divides(model.intermediate_size, "the width of the MLP");
  if (model.experts && job.cluster.mesh.ep == 1)
    rules.divides(model.experts->intermediate_size, "the width of an expert");
  rules.divides(model.vocab_size, "the vocabulary");
  if (design_of(model.family).biased_stacks)
    rules.refuse("tp-biased-experts", "the model's class has no plan of tensor parallelism (configuration_gpt_oss.py)",
                 "tp: 1");
  if (job.quantization && job.quantization->eight_bit())
    rules.refuse("tp-int8",  // seen: bitsandbytes 0.50, nn/modules.py, Linear8bitLt.forward
                 "8-bit weights under tensor parallelism are DTensors, on which bitsandbytes 0.50 stops: 'DTensor' "
                 "object has no attribute 'CB'",
                 "tp: 1, or a base that is not quantized");
  if (job.quantization && !job.quantization->eight_bit())
    rules.refuse(
        "tp-quantized",  // seen: lora/bnb.py, dispatch_bnb_4bit
        "4-bit weights under tensor parallelism are DTensors, on which PEFT 0.21 stops: 'DTensor' object has no "
        "attribute 'compress_statistics'",
        "tp: 1, or a base that is not quantized");
  if (uses_liger(job)) rules.refuse("tp-liger", "Liger's loss reads a whole head", "loss: plain");
  if (!job.adapter) return;
  if (job.adapter->use_dora)
    rules.refuse(
        "tp-dora",  // seen: lora/dora.py, get_weight_norm
        "PEFT 0.21 adds DoRA's plain update to weights that are DTensors: 'aten.add.Tensor got mixed torch.Tensor and "
        "DTensor'",
        "use_dora: false");
  const auto weights = list_weights(job, StackProfile(job.stack).load);
  if (std::ranges::any_of(weights,
                          [](const ListedWeight& w) { return w.kind == WeightKind::saved_copy && w.of_norm(); }))
    rules.refuse("tp-copied-norms", "what sums the gradients of copied norms was not looked at", "tp: 1");
  const auto targets = [&](const std::string& layer) {
    return is_target(*job.adapter, "model.layers.0." + layer, false);
  };
  for (const std::string layer : {"self_attn.o_proj", "mlp.down_proj"})  // seen: "shape is invalid for input of size"
    if (targets(layer) && (layer != "mlp.down_proj" || has_dense_layer(model)))
      rules.refuse("tp-row-adapter", "adapters on " + layer + ", which is cut by its input features, fail in PEFT 0.21",
                   "target layers that are cut by output features: q_proj, k_proj, v_proj, gate_proj, up_proj");
  // seen: "The size of tensor a must match the size of tensor b"
  for (const std::string layer :
       {"self_attn.qkv_proj", "mlp.gate_up_proj", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"})
    if (joins_outputs_of(model, layer) && targets(layer))
      rules.refuse("tp-joined-adapter",
                   "adapters on " + layer +
                       ", whose outputs the ranks join again, fail in PEFT 0.21: 'only colwise and "
                       "rowwise are supported'",
                   design_of(model.family).joins_gate_up ? "tp: 1" : "target gate_proj and up_proj");
  if (is_target(*job.adapter, "lm_head", true))
    rules.refuse("tp-head-adapter",
                 "PEFT shares adapters of layers whose outputs stay cut or are summed, and the head's are joined",
                 "leave lm_head out of target_modules");
}

/// Who shares layers and shards over data parallel ranks too: transformers itself, by fully_shard.
void check_data_parallel(Rules& rules, const ShardingPlan& plan) {
  if (std::holds_alternative<Ddp>(plan))  // parallelism_config.py, __post_init__
    rules.refuse("tp-ddp", "accelerate's ParallelismConfig refuses tensor parallelism beside plain data parallelism",
                 "plan fsdp2, or fsdp2-hsdp with dp_shard_size: 1, which keeps whole replicas");
  if (std::holds_alternative<Fsdp1>(plan))  // parallelism_config.py, _validate_accelerator
    rules.refuse("tp-fsdp1", "accelerate's ParallelismConfig is for FSDP2: FSDP1 knows nothing of layers that are cut",
                 "plan fsdp2");
  if (std::holds_alternative<Zero>(plan))
    rules.refuse("tp-zero",
                 "DeepSpeed's own tensor parallelism (autotp_size) beside ZeRO is not planned yet, and it takes no "
                 "model that transformers has cut",
                 "plan fsdp2");
}

/// A hybrid mesh shards over those that share a sequence, too (parallelism_config.py, fsdp_dim_names, 1.15).
void check_hybrid_ring(Rules& rules, const Fsdp2& plan) {
  const std::int64_t shards = shard_ranks(rules.job, plan), cp = rules.job.cluster.mesh.cp;
  if (shards % cp != 0)
    rules.refuse("cp-hybrid",
                 "cp " + std::to_string(cp) + " does not divide the " + std::to_string(shards) +
                     " ranks that each replica is sharded over",
                 "give plans.fsdp2-hsdp.dp_shard_size");
  else if (shards == cp)
    rules.refuse("cp-hybrid",
                 "accelerate: 'Tensor/Context parallelism (tp/cp_size > 1) cannot be used with pure data parallelism "
                 "(dp_replicate_size > 1 and dp_shard_size == 1)'",
                 "plans.fsdp2-hsdp.dp_shard_size: 2 or more");
}

/// torch's context_parallel under accelerate (accelerator.py, _prepare_cp; big_modeling.py,
/// _attach_context_parallel_hooks of 1.15) and the Trainer (_prepare_context_parallel_inputs of 4.57 and 5.24).
void check_context_parallel(Rules& rules, const ShardingPlan& plan, const StackProfile& stack) {
  const JobSpec& job = rules.job;
  const Mesh& mesh = job.cluster.mesh;
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  if (!stack.trainer.shares_sequences() || !stack.torch.shares_sequences())
    rules.refuse("cp-stack",
                 "context parallelism is planned as transformers 4.57 and newer run it, on torch 2.8 and newer",
                 "a newer stack");
  if (!fsdp2)
    rules.refuse("cp-plan", "accelerate's context parallelism is for FSDP2, whose ranks it shares", "plan fsdp2");
  if (fsdp2 && fsdp2->hybrid) check_hybrid_ring(rules, *fsdp2);
  if (mesh.tp > 1)  // trainer.py, create_accelerator_and_postprocess; seen in 5.24 with torch 2.14
    rules.refuse(
        "cp-mesh",
        "transformers cuts layers over a mesh of all ranks, and the Trainer has accelerate share sequences over "
        "further ones: 'Mesh should not be bigger than default world size'",
        "cp alone");
  else if (mesh.pp > 1 || mesh.ep > 1)
    rules.refuse("cp-mesh", "context parallelism beside that of stages or experts is not planned yet", "cp alone");
  if (job.training.attention != Attention::sdpa)
    rules.refuse("cp-attention", "the Trainer takes sdpa alone for context parallelism", "attn_implementation: sdpa");
  if (job.model.sliding_window)
    rules.refuse("cp-window", "accelerate refuses layers with a sliding window: their masks would be dropped", "cp: 1");
  if (job.training.seq_len % (2 * mesh.cp) != 0)
    rules.refuse("cp-length",
                 "a sequence of " + std::to_string(job.training.seq_len) + " is not cut into " +
                     std::to_string(2 * mesh.cp) + " equal pieces, without which torch does not balance the ring",
                 "a multiple of 2 x cp");
  if (fsdp2 && precision_of(job, *fsdp2).param_dtype.value_or(job.dtype) == DType::float32)
    rules.refuse("cp-float32", "a ring of the attention kernel for float32 is not planned yet",
                 "mixed_precision: bf16");
}

/// transformers distributed/expert_parallel.py, 5.24.
void check_expert_parallel(Rules& rules, const ShardingPlan& plan, const StackProfile& stack) {
  const JobSpec& job = rules.job;
  const Mesh& mesh = job.cluster.mesh;
  if (!stack.models.shards_layers())
    rules.refuse("ep-stack",
                 "expert parallelism is planned as transformers 5.23 and newer run it, on torch 2.9 and newer",
                 "a newer stack");
  if (!job.model.experts) {
    rules.refuse("ep-dense", "the model has no experts to share", "ep: 1");
    return;
  }
  if (design_of(job.model.family).biased_stacks)
    rules.refuse("ep-biased-experts", "experts with biases that ranks share are not planned yet", "ep: 1");
  if (job.model.experts->num_experts % mesh.ep != 0)
    rules.refuse("ep-does-not-divide",
                 "ep " + std::to_string(mesh.ep) + " does not divide the experts, " +
                     std::to_string(job.model.experts->num_experts),
                 "a divisor of it");
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  if (!fsdp2 && !std::holds_alternative<Single>(plan))
    rules.refuse("ep-plan", "transformers shares experts beside its own FSDP2, or without data parallelism",
                 "plan fsdp2, or single with ep as large as tp");
  const std::int64_t sharing = (fsdp2 ? shard_ranks(job, *fsdp2) : 1) * mesh.tp;
  if (sharing % mesh.ep != 0)  // configuration_utils.py, _validate_mesh_config
    rules.refuse("ep-mesh",
                 "ep must divide the ranks that shard and share layers, of which there are " + std::to_string(sharing),
                 "a divisor of it");
  if (mesh.pp > 1)  // _validate_resolved_ep_plan
    rules.refuse("ep-pp", "transformers: 'Combining token dispatch with pipeline parallelism is not supported'",
                 "pp: 1");
  // Where no gradient passes through the experts' inputs, tokens stay (AutoEP).
  if (job.adapter && !is_target(*job.adapter, "model.layers.0.self_attn.q_proj", false) &&
      !is_target(*job.adapter, "model.layers.0.self_attn.v_proj", false))
    rules.refuse("ep-adapter", "expert parallelism is planned where gradients pass through every layer",
                 "target q_proj or v_proj too");
}

/// What wraps a stage's layers: the passes of a stage know of DDP and FSDP2 (stage.py, backward_maybe_with_nosync).
void check_beside_stages(Rules& rules, const ShardingPlan& plan) {
  if (std::holds_alternative<Fsdp1>(plan) || std::holds_alternative<Zero>(plan))
    rules.refuse("pp-plan",
                 "torch's pipeline stages put off the reductions of DDP and FSDP2 to their last microbatch, and know "
                 "nothing of FSDP1 or DeepSpeed",
                 "plan ddp, fsdp2 or single");
  if (!std::holds_alternative<Single>(plan) && rules.job.cluster.mesh.tp > 1)
    rules.refuse("pp-mesh", "stages whose layers ranks share are planned for one replica of the model only",
                 "plan single, or tp: 1");
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  if (fsdp2 && (fsdp2->hybrid || fsdp2->cpu_offload))
    rules.refuse("pp-fsdp2", "stages beside a hybrid mesh or offload are not planned yet",
                 "plan fsdp2 without cpu_offload");
}

/// torch.distributed.pipelining (stage.py, schedules.py of 2.14), as torchtitan drives it.
void check_pipeline(Rules& rules, const ShardingPlan& plan) {
  const JobSpec& job = rules.job;
  const std::int64_t stages = job.cluster.mesh.pp;
  check_beside_stages(rules, plan);
  if (job.model.num_hidden_layers < stages)
    rules.refuse("pp-layers",
                 std::to_string(stages) + " stages of " + std::to_string(job.model.num_hidden_layers) + " layers",
                 "at most one stage for each layer");
  if (job.training.gradient_accumulation_steps < stages)
    rules.refuse("pp-microbatches",
                 "1F1B needs at least as many microbatches as stages, and gradient_accumulation_steps is " +
                     std::to_string(job.training.gradient_accumulation_steps),
                 "gradient_accumulation_steps: " + std::to_string(stages) + " or more");
  if (job.model.tie_word_embeddings)
    rules.refuse("pp-tied", "embedding and head are one weight, and stand on different stages", "pp: 1");
}

/// What comes after training.
void check_phases_of(Rules& rules, const ShardingPlan& plan, const StackProfile& stack) {
  const JobSpec& job = rules.job;
  const Mesh& mesh = job.cluster.mesh;
  const auto refuse = [&](const char* message, const char* hint) { rules.refuse("mesh-phases", message, hint); };
  if (mesh.pp > 1 && (job.training.saves_model || job.training.checkpoint))
    refuse("the Trainer saves no stages of a pipeline", "leave training.save and training.checkpoint out");
  if (!job.training.evaluation) return;
  if (mesh.pp > 1) refuse("the Trainer evaluates no stages of a pipeline", "leave training.evaluation out");
  if (mesh.cp > 1 && !stack.trainer.shares_evaluated_sequences())
    refuse(
        "transformers before 5.23 evaluates whole sequences on each of the ranks that share them, which is not "
        "planned yet",
        "leave training.evaluation out, or take a newer stack");
  else if (mesh.cp > 1 && !job.training.evaluation->prediction_loss_only)
    refuse("logits of shared sequences are gathered as they lie on the ranks, beside whole labels, which fit no metric",
           "prediction_loss_only: true");
  // expert_parallel.py, AutoEP: they then sum what each has computed of all tokens.
  if (mesh.ep > 1 && std::holds_alternative<Single>(plan))
    refuse("ranks that share experts and batches send no tokens where nothing is trained, which is not planned yet",
           "plan fsdp2, or leave training.evaluation out");
}

}  // namespace

Diagnostics check_mesh(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack) {
  const Mesh& mesh = job.cluster.mesh;
  Rules rules{job};
  if (mesh.cp > 1) check_context_parallel(rules, plan, stack);
  if (mesh.ep > 1) check_expert_parallel(rules, plan, stack);
  if (mesh.tp > 1) check_tensor_parallel(rules, stack);
  if (mesh.tp > 1) check_data_parallel(rules, plan);
  if (mesh.pp > 1) check_pipeline(rules, plan);
  check_phases_of(rules, plan, stack);
  return std::move(rules.found);
}

std::int64_t ranks_of_stage(const JobSpec& job) {
  const Mesh& mesh = job.cluster.mesh;
  return std::max(job.cluster.world_size, mesh.ranks_of_replica()) / mesh.pp;
}

DType dtype_between_stages(const JobSpec& job, const ShardingPlan& plan) {
  const bool widened = job.quantization && job.quantization->prepare_kbit && !job.quantization->trl_bf16_cast;
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  const DType stream = widened ? DType::float32 : job.dtype;
  return fsdp2 ? precision_of(job, *fsdp2).output_dtype.value_or(stream) : stream;
}

ModelSlice slice_of(const JobSpec& job, std::int64_t rank) {
  const Mesh& mesh = job.cluster.mesh;
  const bool steps = mesh.cp_comm_strategy == CpCommStrategy::alltoall;
  return {.tp = mesh.tp,
          .stages = mesh.pp,
          .stage = rank / ranks_of_stage(job) % mesh.pp,
          .ring = {.ranks = mesh.cp,
                   .rank = rank / mesh.tp % mesh.cp,
                   .rotation = steps ? RingRotation::alltoall : RingRotation::allgather},
          .ep = mesh.ep};
}

std::vector<std::int64_t> distinct_ranks(const JobSpec& job, const ShardingPlan& plan) {
  const Mesh& mesh = job.cluster.mesh;
  std::vector<std::int64_t> ranks{0};
  for (std::int64_t place = 1; place < mesh.cp; ++place) ranks.push_back(place);
  // Without a plan for them further replicas are idle.
  const bool alone = std::holds_alternative<Single>(plan);
  const std::int64_t apart = alone ? mesh.ranks_of_replica() / mesh.pp : ranks_of_stage(job);
  for (std::int64_t stage = 1; stage < mesh.pp; ++stage) ranks.push_back(stage * apart);
  return ranks;
}

Diagnostics mesh_notes(const JobSpec& job) {
  Diagnostics notes;
  const auto note = [&](std::string code, std::string message) {
    Diagnostic& added = notes.emplace_back();
    added.severity = Severity::note, added.code = std::move(code), added.message = std::move(message);
    added.key_path = "cluster.mesh";
  };
  if (job.cluster.mesh.pp > 1)
    note("pipeline",
         "the Trainer runs no pipelines, and transformers none beside data parallelism: stages run "
         "torch.distributed.pipelining's Schedule1F1B, with the microbatches of gradient_accumulation_steps, on the "
         "layers of transformers, which ddp and fsdp2 wrap as accelerate does a whole model");
  if (job.cluster.mesh.ep > 1)
    note("even-routing",
         "routers are taken to send tokens to all experts evenly: a rank whose experts get more of them needs more, at "
         "most " +
             std::to_string(job.cluster.mesh.ep) + " times the activations of its experts");
  return notes;
}

}  // namespace qlp
