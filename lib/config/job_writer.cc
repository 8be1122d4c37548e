#include "config/job_writer.h"

#include <string_view>

#include "base/text.h"
#include "config/family_table.h"
#include "config/job_sections.h"
#include "config/model_numbers.h"
#include "config/yaml_text.h"
#include "plan/gpu_catalogue.h"
#include "plan/job_names.h"
#include "plan/plan_names.h"

namespace qlp {
namespace {

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return exact_number(value); }
std::string text_of(DType value) { return std::string(name_of(value)); }
template <NamedEnum E>
std::string text_of(E value) {
  return std::string(name_of(value));
}

std::string text_of(const ReshardAfterForward& value) {
  return std::visit([](auto chosen) { return text_of(chosen); }, value);
}

std::string text_of(const std::vector<std::string>& value) { return yaml_list(value); }

/// Writes "key: value" lines of one section.
class Lines {
 public:
  explicit Lines(std::string_view section) { text_ = std::string(section) + ":\n"; }

  void raw(std::string_view key, const std::string& value) { text_ += "  " + std::string(key) + ": " + value + "\n"; }
  template <class T>
  void add(std::string_view key, const T& value) {
    raw(key, text_of(value));
  }
  template <class T>
  void add(std::string_view key, const std::optional<T>& value) {
    if (value) raw(key, text_of(*value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string numbers_text(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

/// Names of layers as PEFT and the Trainer take them.
std::string targets_text(bool all_linear, const std::string& pattern, const std::vector<std::string>& names) {
  if (!pattern.empty()) return yaml_text(pattern);
  return all_linear && names.empty() ? "all-linear" : yaml_list(names);
}

std::string model_text(const JobSpec& job) {
  const auto& m = job.model;
  Lines lines("model");
  lines.raw("name", yaml_text(m.name));
  lines.add("family", m.family);
  lines.add("hidden_size", m.hidden_size);
  lines.add("intermediate_size", m.intermediate_size);
  lines.add("num_hidden_layers", m.num_hidden_layers);
  lines.add("num_attention_heads", m.num_attention_heads);
  lines.add("num_key_value_heads", m.num_key_value_heads);
  lines.add("head_dim", m.head_dim);
  lines.add("vocab_size", m.vocab_size);
  lines.add("max_position_embeddings", m.max_position_embeddings);
  lines.add("tie_word_embeddings", m.tie_word_embeddings);
  const FamilyRow& row = row_of(m.family);
  const bool biased = row.biases_output() ? m.attention_bias : row.reads_bias() && m.qkv_bias;
  if (biased != row.bias_by_default()) lines.add("attention_bias", biased);
  if (m.mlp_bias) lines.add("mlp_bias", true);
  if (m.experts) {
    lines.add("num_experts", m.experts->num_experts);
    lines.add("num_experts_per_tok", m.experts->num_experts_per_tok);
    if (row.experts->moe_intermediate_size) lines.add("moe_intermediate_size", m.experts->intermediate_size);
    if (row.experts->reads_norm_topk_prob) lines.add("norm_topk_prob", m.experts->norm_topk_prob);
    if (row.experts->picks_layers) lines.add("decoder_sparse_step", m.experts->decoder_sparse_step);
    if (!m.experts->mlp_only_layers.empty()) lines.raw("mlp_only_layers", numbers_text(m.experts->mlp_only_layers));
    if (m.experts->shared_expert_intermediate_size)
      lines.add("shared_expert_intermediate_size", m.experts->shared_expert_intermediate_size);
  }
  lines.add("sliding_window", m.sliding_window);
  if (m.first_sliding_layer != 0) lines.add("max_window_layers", m.first_sliding_layer);
  if (m.sliding_window && row.window.kind == WindowKind::by_layer)
    lines.add("sliding_window_pattern", m.sliding_window_pattern);
  if (row.no_rope_layer_interval != 0) lines.add("no_rope_layer_interval", m.no_rope_layer_interval);
  if (m.family == Family::gemma2) {
    lines.raw("attn_logit_softcapping", m.attn_logit_softcapping ? text_of(*m.attn_logit_softcapping) : "null");
    lines.raw("final_logit_softcapping", m.final_logit_softcapping ? text_of(*m.final_logit_softcapping) : "null");
  }
  if (m.rope == RopeKind::longrope) lines.raw("rope_type", "longrope");
  lines.add("original_max_position_embeddings", m.original_max_position_embeddings);
  if (row.partial_rotary_factor != 0 && m.partial_rotary_factor != row.partial_rotary_factor)
    lines.add("partial_rotary_factor", m.partial_rotary_factor);
  for (const auto& [key, value] : model_number_lines(m)) lines.raw(key, value);
  lines.add("torch_dtype", m.checkpoint_dtype);
  lines.add("dtype", job.dtype);
  lines.add("loading", job.loading);
  if (m.mxfp4_experts) lines.add("mxfp4_experts", true);
  if (m.stacked_experts) lines.add("stacked_experts", true);
  return lines.text();
}

std::string quantization_text(const QuantizationSpec& q) {
  Lines lines("quantization");
  lines.add("quant_type", q.quant_type);
  if (q.eight_bit()) {
    lines.add("llm_int8_threshold", q.llm_int8_threshold);
  } else {
    lines.add("double_quant", q.double_quant);
    lines.add("quant_storage", q.quant_storage);
    lines.add("compute_dtype", q.compute_dtype);
  }
  lines.add("prepare_kbit", q.prepare_kbit);
  lines.add("trl_bf16_cast", q.trl_bf16_cast);
  return lines.text();
}

std::string adapter_text(const AdapterSpec& a) {
  Lines lines("adapter");
  lines.raw("type", "lora");
  lines.add("r", a.r);
  lines.add("lora_alpha", a.lora_alpha);
  lines.add("lora_dropout", a.lora_dropout);
  lines.add("use_dora", a.use_dora);
  lines.add("use_rslora", a.use_rslora);
  lines.raw("target_modules", targets_text(a.all_linear, a.target_pattern, a.target_modules));
  if (!a.exclude_pattern.empty()) lines.raw("exclude_modules", yaml_text(a.exclude_pattern));
  if (!a.exclude_modules.empty()) lines.raw("exclude_modules", yaml_list(a.exclude_modules));
  if (!a.layers_to_transform.empty()) lines.raw("layers_to_transform", numbers_text(a.layers_to_transform));
  if (!a.layers_pattern.empty()) lines.raw("layers_pattern", yaml_list(a.layers_pattern));
  if (!a.target_parameters.empty()) lines.raw("target_parameters", yaml_list(a.target_parameters));
  if (!a.modules_to_save.empty()) lines.raw("modules_to_save", yaml_list(a.modules_to_save));
  if (!a.trainable_token_indices.empty()) lines.raw("trainable_token_indices", numbers_text(a.trainable_token_indices));
  const auto patterns = [&](const char* key, const auto& rows) {
    if (rows.empty()) return;
    lines.raw(key, "");
    for (const auto& [name, value] : rows) lines.raw("  " + yaml_text(name), text_of(value));
  };
  patterns("rank_pattern", a.rank_pattern);
  patterns("alpha_pattern", a.alpha_pattern);
  lines.add("bias", a.bias);
  lines.add("lora_bias", a.lora_bias);
  lines.add("autocast_adapter_dtype", a.autocast_adapter_dtype);
  lines.add("dtype", a.dtype);
  return lines.text();
}

std::string evaluation_options(const EvaluationSpec& e) {
  std::string text = "{per_device_eval_batch_size: " + text_of(e.per_device_eval_batch_size) +
                     ", prediction_loss_only: " + text_of(e.prediction_loss_only);
  if (e.num_samples != 0) text += ", num_samples: " + text_of(e.num_samples);
  if (e.eval_accumulation_steps) text += ", eval_accumulation_steps: " + text_of(*e.eval_accumulation_steps);
  return text + "}";
}

std::string training_text(const TrainingSpec& t) {
  Lines lines("training");
  lines.add("micro_batch_size", t.micro_batch_size);
  lines.add("seq_len", t.seq_len);
  lines.add("gradient_accumulation_steps", t.gradient_accumulation_steps);
  lines.add("sync_each_batch", t.sync_each_batch);
  lines.raw("gradient_checkpointing", t.gradient_checkpointing == GradientCheckpointing::none ? "false"
                                      : t.gradient_checkpointing == GradientCheckpointing::reentrant
                                          ? "{use_reentrant: true}"
                                          : "{use_reentrant: false}");
  lines.raw("mixed_precision", t.bf16 ? "bf16" : t.fp16 ? "fp16" : "\"no\"");
  lines.add("tf32", t.tf32);
  lines.raw("optimizer", t.optimizer.name);
  if (const auto& targets = t.optim_targets)
    lines.raw("optim_target_modules", targets_text(targets->all_linear, targets->pattern, targets->modules));
  if (const auto* low_rank = low_rank_of(t.optimizer.kind)) {
    const auto* apollo = std::get_if<Apollo>(&t.optimizer.kind);
    const std::string scaling =
        apollo ? "proj: " + text_of(apollo->proj) + ", scale_type: " + text_of(apollo->scale_type) + ", " : "";
    lines.raw("optim_args", "{" + scaling + "rank: " + text_of(low_rank->rank) +
                                ", proj_type: " + text_of(low_rank->proj_type) + ", update_proj_gap: " +
                                text_of(low_rank->update_proj_gap) + ", scale: " + text_of(low_rank->scale) + "}");
  }
  lines.add("max_grad_norm", t.max_grad_norm);
  lines.add("attn_implementation", t.attention);
  lines.add("loss", t.loss);
  if (t.evaluation) lines.raw("evaluation", evaluation_options(*t.evaluation));
  if (t.saves_model) lines.raw("save", "{state_dict_type: FULL_STATE_DICT}");
  if (t.weight_decay != 0) lines.add("weight_decay", t.weight_decay);
  if (t.checkpoint) lines.raw("checkpoint", "{state_dict_type: " + text_of(*t.checkpoint) + "}");
  lines.add("num_steps", t.num_steps);
  return lines.text();
}

std::string cluster_text(const ClusterSpec& c) {
  Lines lines("cluster");
  lines.raw("gpu", yaml_text(c.gpu.name));
  const auto catalogue = find_gpu(c.gpu.name);
  if (c.gpu.capacity_source == kCapacityOfJob) lines.raw("memory", exact_size(c.gpu.capacity));
  if (!catalogue || catalogue->compute_capability != c.gpu.compute_capability)
    lines.add("compute_capability", c.gpu.compute_capability / 10.0);
  lines.add("world_size", c.world_size);
  lines.add("gpus_per_node", c.gpus_per_node);
  if (c.intra_node_bandwidth) lines.raw("intra_node_bandwidth", exact_rate(*c.intra_node_bandwidth));
  lines.raw("inter_node_bandwidth", exact_rate(c.inter_node_bandwidth));
  if (c.mesh != Mesh{})
    lines.raw("mesh",
              "{tp: " + text_of(c.mesh.tp) + ", cp: " + text_of(c.mesh.cp) + ", pp: " + text_of(c.mesh.pp) +
                  ", ep: " + text_of(c.mesh.ep) +
                  (c.mesh.cp > 1 ? ", cp_comm_strategy: " + std::string(name_of(c.mesh.cp_comm_strategy)) : "") + "}");
  lines.raw("used_by_others", exact_size(c.used_by_others));
  if (c.host_memory) lines.raw("host_memory", exact_size(*c.host_memory));
  lines.raw("margin", exact_percent(c.margin));
  return lines.text();
}

/// Gathers the options that a job file may give, as a map in one line.
struct OptionWriter {
  std::string& text;

  template <class T, class... Range>
  void option(std::string_view key, const T& value, Range...) const {
    add(key, text_of(value));
  }
  template <class T, class... Range>
  void automatic(std::string_view key, const std::optional<T>& value, Range...) const {
    add(key, value ? text_of(*value) : "auto");
  }
  template <class T, class... Range>
  void fillable(std::string_view key, const Fillable<T>& value, Range...) const {
    add(key, std::visit([](const auto& chosen) { return text_of(chosen); }, value));
  }
  template <class Options>
  void section(std::string_view key, const Options& options) const {
    std::string inner;
    visit_options(options, OptionWriter{inner});
    add(key, "{" + inner + "}");
  }
  template <class T>
  void named(std::string_view, const T&) const {}

 private:
  void add(std::string_view key, const std::string& value) const {
    text += (text.empty() ? "" : ", ") + std::string(key) + ": " + value;
  }
};

std::string options_of(const ShardingPlan& plan) {
  std::string text;
  std::visit([&](const auto& options) { visit_options(options, OptionWriter{text}); }, plan);
  return "{" + text + "}";
}

std::string plans_text(const std::vector<NamedPlan>& plans) {
  Lines lines("plans");
  for (const auto& plan : plans) lines.raw(plan.name, options_of(plan.plan));
  return lines.text();
}

std::string stack_text(const StackVersions& s) {
  Lines lines("stack");
  lines.raw("torch", to_string(s.torch));
  lines.raw("transformers", to_string(s.transformers));
  lines.raw("peft", to_string(s.peft));
  lines.raw("accelerate", to_string(s.accelerate));
  lines.raw("bitsandbytes", to_string(s.bitsandbytes));
  lines.raw("deepspeed", to_string(s.deepspeed));
  return lines.text();
}

}  // namespace

std::string to_yaml(const JobSpec& job) {
  std::string text = "schema: 1\n" + model_text(job);
  if (job.quantization) text += quantization_text(*job.quantization);
  if (job.adapter) text += adapter_text(*job.adapter);
  text += training_text(job.training) + cluster_text(job.cluster);
  if (!job.allocator_text.empty()) text += "allocator: " + yaml_text(job.allocator_text) + "\n";
  return text + plans_text(job.plans) + stack_text(job.stack);
}

}  // namespace qlp
