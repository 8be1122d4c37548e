#include "report/job_json.h"

#include <nlohmann/json.hpp>

#include "checkpoint/rope_json.h"
#include "plan/job_names.h"
#include "plan/plan_names.h"
#include "report/format.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

Json rope_json(const ModelSpec& model) {
  const RopeScaling& scaling = model.rope_scaling;
  if (model.rope != RopeKind::longrope) return rope_scaling_json(scaling);
  Json out{{"rope_type", name_of(RopeStretch::longrope)}};
  put(out, "attention_factor", scaling.attention_factor);
  if (!scaling.short_factor.empty()) out["short_factor"] = scaling.short_factor;
  if (!scaling.long_factor.empty()) out["long_factor"] = scaling.long_factor;
  return out;
}

Json model_json(const JobSpec& job) {
  const ModelSpec& model = job.model;
  Json out;
  out["name"] = model.name;
  out["model_type"] = name_of(model.family);
  out["dtype"] = name_of(job.dtype);
  out["loading"] = name_of(job.loading);
  out["hidden_size"] = model.hidden_size;
  out["intermediate_size"] = model.intermediate_size;
  out["num_hidden_layers"] = model.num_hidden_layers;
  out["num_attention_heads"] = model.num_attention_heads;
  out["num_key_value_heads"] = model.num_key_value_heads;
  out["head_dim"] = model.head_dim;
  out["vocab_size"] = model.vocab_size;
  out["max_position_embeddings"] = model.max_position_embeddings;
  out["tie_word_embeddings"] = model.tie_word_embeddings;
  out["qkv_bias"] = model.qkv_bias;
  out["attention_bias"] = model.attention_bias;
  out["mlp_bias"] = model.mlp_bias;
  if (model.experts)
    out["experts"] = {{"num_experts", model.experts->num_experts},
                      {"num_experts_per_tok", model.experts->num_experts_per_tok},
                      {"intermediate_size", model.experts->intermediate_size},
                      {"norm_topk_prob", model.experts->norm_topk_prob},
                      {"decoder_sparse_step", model.experts->decoder_sparse_step}};
  if (model.experts && !model.experts->mlp_only_layers.empty())
    out["experts"]["mlp_only_layers"] = model.experts->mlp_only_layers;
  if (model.experts && model.experts->shared_expert_intermediate_size)
    out["experts"]["shared_expert_intermediate_size"] = model.experts->shared_expert_intermediate_size;
  put(out, "sliding_window", model.sliding_window);
  if (model.first_sliding_layer) out["max_window_layers"] = model.first_sliding_layer;
  if (model.sliding_window_pattern) out["sliding_window_pattern"] = model.sliding_window_pattern;
  if (model.no_rope_layer_interval) out["no_rope_layer_interval"] = model.no_rope_layer_interval;
  put(out, "attn_logit_softcapping", model.attn_logit_softcapping);
  put(out, "final_logit_softcapping", model.final_logit_softcapping);
  out["rope_type"] = name_of(model.rope);
  put(out, "original_max_position_embeddings", model.original_max_position_embeddings);
  out["partial_rotary_factor"] = model.partial_rotary_factor;
  out["rms_norm_eps"] = model.rms_norm_eps;
  out["rope_theta"] = model.rope_theta;
  if (model.rope_scaling != RopeScaling{}) out["rope_scaling"] = rope_json(model);
  put(out, "query_pre_attn_scalar", model.query_pre_attn_scalar);
  for (const auto& [key, member, of_class] : factors_of(model.family)) out[key] = model.factors.*member;
  if (model.checkpoint_dtype) out["checkpoint_dtype"] = name_of(*model.checkpoint_dtype);
  if (model.mxfp4_experts) out["mxfp4_experts"] = true;
  if (model.stacked_experts) out["stacked_experts"] = true;
  return out;
}

Json quantization_json(const QuantizationSpec& quantization) {
  Json out{{"quant_type", name_of(quantization.quant_type)},
           {"double_quant", quantization.double_quant},
           {"quant_storage", name_of(quantization.quant_storage)},
           {"compute_dtype", name_of(quantization.compute_dtype)},
           {"prepare_kbit", quantization.prepare_kbit},
           {"trl_bf16_cast", quantization.trl_bf16_cast}};
  if (quantization.eight_bit()) out["llm_int8_threshold"] = quantization.llm_int8_threshold;
  return out;
}

/// Names of layers as PEFT and the Trainer take them.
Json targets_json(bool all_linear, const std::string& pattern, const std::vector<std::string>& names) {
  if (!pattern.empty()) return pattern;
  return all_linear && names.empty() ? Json("all-linear") : Json(names);
}

Json adapter_json(const AdapterSpec& adapter) {
  Json out{{"type", "lora"},
           {"r", adapter.r},
           {"lora_alpha", adapter.lora_alpha},
           {"lora_dropout", adapter.lora_dropout},
           {"use_dora", adapter.use_dora},
           {"use_rslora", adapter.use_rslora}};
  out["target_modules"] = targets_json(adapter.all_linear, adapter.target_pattern, adapter.target_modules);
  if (!adapter.exclude_pattern.empty()) out["exclude_modules"] = adapter.exclude_pattern;
  if (!adapter.exclude_modules.empty()) out["exclude_modules"] = adapter.exclude_modules;
  if (!adapter.layers_to_transform.empty()) out["layers_to_transform"] = adapter.layers_to_transform;
  if (!adapter.layers_pattern.empty()) out["layers_pattern"] = adapter.layers_pattern;
  if (!adapter.target_parameters.empty()) out["target_parameters"] = adapter.target_parameters;
  if (!adapter.modules_to_save.empty()) out["modules_to_save"] = adapter.modules_to_save;
  if (!adapter.trainable_token_indices.empty()) out["trainable_token_indices"] = adapter.trainable_token_indices;
  for (const auto& [pattern, rank] : adapter.rank_pattern) out["rank_pattern"][pattern] = rank;
  for (const auto& [pattern, alpha] : adapter.alpha_pattern) out["alpha_pattern"][pattern] = alpha;
  if (adapter.bias != AdapterBias::none) out["bias"] = name_of(adapter.bias);
  if (adapter.lora_bias) out["lora_bias"] = true;
  out["autocast_adapter_dtype"] = adapter.autocast_adapter_dtype;
  if (adapter.dtype) out["dtype"] = name_of(*adapter.dtype);
  return out;
}

Json checkpointing_json(GradientCheckpointing checkpointing) {
  if (checkpointing == GradientCheckpointing::none) return false;
  return {{"use_reentrant", checkpointing == GradientCheckpointing::reentrant}};
}

Json evaluation_json(const EvaluationSpec& evaluation) {
  Json out{{"per_device_eval_batch_size", evaluation.per_device_eval_batch_size},
           {"prediction_loss_only", evaluation.prediction_loss_only}};
  if (evaluation.num_samples != 0) out["num_samples"] = evaluation.num_samples;
  if (evaluation.eval_accumulation_steps) out["eval_accumulation_steps"] = *evaluation.eval_accumulation_steps;
  return out;
}

Json training_json(const TrainingSpec& training) {
  Json out{{"micro_batch_size", training.micro_batch_size},
           {"seq_len", training.seq_len},
           {"gradient_accumulation_steps", training.gradient_accumulation_steps},
           {"sync_each_batch", training.sync_each_batch},
           {"gradient_checkpointing", checkpointing_json(training.gradient_checkpointing)},
           {"tf32", training.tf32},
           {"mixed_precision", training.bf16   ? "bf16"
                               : training.fp16 ? "fp16"
                                               : "no"},
           {"optimizer", training.optimizer.name},
           {"weight_decay", training.weight_decay},
           {"max_grad_norm", training.max_grad_norm},
           {"attn_implementation", name_of(training.attention)},
           {"loss", name_of(training.loss)},
           {"num_steps", training.num_steps}};
  if (const auto& targets = training.optim_targets)
    out["optim_target_modules"] = targets_json(targets->all_linear, targets->pattern, targets->modules);
  if (const auto* low_rank = low_rank_of(training.optimizer.kind))
    out["optim_args"] = {{"rank", low_rank->rank},
                         {"proj_type", name_of(low_rank->proj_type)},
                         {"update_proj_gap", low_rank->update_proj_gap},
                         {"scale", low_rank->scale}};
  if (const auto* apollo = std::get_if<Apollo>(&training.optimizer.kind)) {
    out["optim_args"]["proj"] = name_of(apollo->proj);
    out["optim_args"]["scale_type"] = name_of(apollo->scale_type);
  }
  if (training.evaluation) out["evaluation"] = evaluation_json(*training.evaluation);
  if (training.saves_model) out["save"] = {{"state_dict_type", "FULL_STATE_DICT"}};
  if (training.checkpoint) out["checkpoint"] = {{"state_dict_type", name_of(*training.checkpoint)}};
  return out;
}

Json cluster_json(const ClusterSpec& cluster) {
  Json gpu{{"name", cluster.gpu.name},
           {"capacity_bytes", cluster.gpu.capacity.count()},
           {"capacity_source", cluster.gpu.capacity_source},
           {"compute_capability", compute_capability_text(cluster.gpu.compute_capability)},
           {"sm_count", cluster.gpu.sm_count}};
  Json out{{"gpu", std::move(gpu)}, {"world_size", cluster.world_size}, {"gpus_per_node", cluster.gpus_per_node}};
  if (const auto& machine = cluster.machine) {
    out["machine"] = {{"gpu", machine->gpu}, {"versions", machine->versions}};
    if (!machine->time.empty()) out["machine"].update({{"time", machine->time}, {"host", machine->host}});
  }
  out["mesh"] = mesh_json(cluster.mesh);
  if (cluster.intra_node_bandwidth) out["intra_node_bytes_per_second"] = cluster.intra_node_bandwidth->count();
  out["inter_node_bytes_per_second"] = cluster.inter_node_bandwidth.count();
  out["used_by_others_bytes"] = cluster.used_by_others.count();
  if (cluster.host_memory) out["host_memory_bytes"] = cluster.host_memory->count();
  out["margin"] = cluster.margin;
  return out;
}

/// Every option of a plan, those that its name says too.
struct OptionWriter {
  Json& out;

  template <class T, class... Range>
  void option(std::string_view key, const T& value, Range...) const {
    named(key, value);
  }
  template <class T, class... Range>
  void automatic(std::string_view key, const std::optional<T>& value, Range...) const {
    if (value)
      named(key, *value);
    else
      out[std::string(key)] = "auto";
  }
  template <class T, class... Range>
  void fillable(std::string_view key, const Fillable<T>& value, Range...) const {
    std::visit([&](const auto& chosen) { named(key, chosen); }, value);
  }
  template <class Options>
  void section(std::string_view key, const Options& options) const {
    Json inner = Json::object();
    visit_options(options, OptionWriter{inner});
    out[std::string(key)] = std::move(inner);
  }
  template <class T>
  void named(std::string_view key, const T& value) const {
    if constexpr (requires { name_of(value); })
      out[std::string(key)] = name_of(value);
    else if constexpr (std::same_as<T, ReshardAfterForward>)
      std::visit([&](auto chosen) { out[std::string(key)] = chosen; }, value);
    else
      out[std::string(key)] = value;
  }
};

}  // namespace

Json mesh_json(const Mesh& mesh) {
  Json out{{"tp", mesh.tp}, {"cp", mesh.cp}, {"pp", mesh.pp}, {"ep", mesh.ep}};
  if (mesh.cp > 1) out["cp_comm_strategy"] = name_of(mesh.cp_comm_strategy);
  return out;
}

Json plan_options_json(const ShardingPlan& plan) {
  Json out = Json::object();
  std::visit([&](const auto& options) { visit_options(options, OptionWriter{out}); }, plan);
  return out;
}

Json job_json(const JobSpec& job) {
  Json out;
  out["model"] = model_json(job);
  if (job.quantization) out["quantization"] = quantization_json(*job.quantization);
  if (job.adapter) out["adapter"] = adapter_json(*job.adapter);
  out["training"] = training_json(job.training);
  out["cluster"] = cluster_json(job.cluster);
  if (!job.allocator_text.empty()) out["allocator"] = job.allocator_text;
  out["stack"] = {{"torch", to_string(job.stack.torch)},
                  {"transformers", to_string(job.stack.transformers)},
                  {"peft", to_string(job.stack.peft)},
                  {"accelerate", to_string(job.stack.accelerate)},
                  {"bitsandbytes", to_string(job.stack.bitsandbytes)},
                  {"deepspeed", to_string(job.stack.deepspeed)}};
  return out;
}

Json job_json(const JobSpec& job, const ParameterCounts& parameters) {
  Json out = job_json(job);
  out["parameters"] = {{"total", parameters.total}, {"trainable", parameters.trainable}};
  return out;
}

}  // namespace qlp
