#include "config/axolotl_reader.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "config/trainer_keys.h"

namespace qlp {
namespace {

constexpr auto kAxolotlWithoutMemory = std::to_array<std::string_view>({"datasets",
                                                                        "dataset_*",
                                                                        "test_datasets",
                                                                        "output_dir",
                                                                        "wandb_*",
                                                                        "mlflow_*",
                                                                        "comet_*",
                                                                        "trackio_*",
                                                                        "swanlab_*",
                                                                        "use_wandb",
                                                                        "use_mlflow",
                                                                        "use_comet",
                                                                        "use_tensorboard",
                                                                        "special_tokens",
                                                                        "tokenizer_*",
                                                                        "tokens",
                                                                        "chat_template*",
                                                                        "eot_tokens",
                                                                        "default_system_message",
                                                                        "num_epochs",
                                                                        "max_steps",
                                                                        "learning_rate",
                                                                        "lr_*",
                                                                        "cosine_*",
                                                                        "adam_*",
                                                                        "warmup_*",
                                                                        "logging_steps",
                                                                        "eval_steps",
                                                                        "evals_per_epoch",
                                                                        "save_*",
                                                                        "saves_per_epoch",
                                                                        "eval_table_*",
                                                                        "eval_max_new_tokens",
                                                                        "eval_sample_packing",
                                                                        "eval_strategy",
                                                                        "resume_from_checkpoint",
                                                                        "auto_resume_*",
                                                                        "hub_*",
                                                                        "push_*",
                                                                        "hf_*",
                                                                        "trust_remote_code",
                                                                        "model_type",
                                                                        "base_model_*",
                                                                        "revision_of_model",
                                                                        "strict",
                                                                        "seed",
                                                                        "debug",
                                                                        "group_by_length",
                                                                        "loss_watchdog_*",
                                                                        "early_stopping_patience",
                                                                        "train_on_inputs",
                                                                        "sample_packing*",
                                                                        "pad_to_sequence_len",
                                                                        "pad_to_multiple_of",
                                                                        "shuffle_*",
                                                                        "excess_length_strategy",
                                                                        "ddp_*",
                                                                        "dataloader_*",
                                                                        "local_rank",
                                                                        "is_*_derived_model",
                                                                        "lora_fan_in_fan_out"});

constexpr std::string_view kElsewhere =
    "it changes which parameters are trained, or where tensors lie; not planned yet";
constexpr auto kAxolotlNotSupported = std::to_array<NotSupported>({
    {"gptq", "GPTQ bases are not planned yet"},
    {"rl", "only supervised training is planned"},
    {"reward_model", "only causal language models are planned"},
    {"process_reward_model", "only causal language models are planned"},
    {"relora", "it is not planned yet"},
    {"activation_offloading", kElsewhere},
    {"layer_offloading", kElsewhere},
    {"selective_checkpointing", "it is not planned yet"},
    {"quantize_moe_experts", "experts in 4 bits are not planned yet"},
    {"peft_layer_replication", "it changes the number of layers; not planned yet"},
    {"peft_ensure_weight_tying", "adapters that share a tied table are not planned yet"},
    {"loftq_config", "LoftQ quantizes weights that are loaded in full; not planned yet"},
    {"unfrozen_parameters", kElsewhere},
    {"lora_on_cpu", kElsewhere},
    {"lisa_n_layers", kElsewhere},
    {"resize_token_embeddings_to_32x", "it changes the vocabulary; give the model that results"},
    {"qat", "quantization aware training is not planned"},
    {"fp8", "8-bit float matrix products are not planned yet"},
    {"use_onebitllms", "it is not planned"},
    {"expert_parallel_size", "say it in a job file: cluster.mesh"},
    {"is_multimodal", "only language models are planned"},
    {"llama4_linearized_experts", "it is not planned"},
});

/// Triton kernels of axolotl's own that keep less for the backward pass.
constexpr auto kKernels =
    std::to_array<std::string_view>({"lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel", "torch_compile"});

/// bf16 is on unless fp16 is (utils/config/__init__.py, normalize_config); "auto" is what a GPU from Ampere on does.
void read_precision(ForeignFile& file) {
  const auto* bf16 = file.map().take("bf16");
  const bool half = file.is_on("fp16"), plain_half = file.is_on("float16"), plain_bf16 = file.is_on("bfloat16");
  const bool automatic = bf16 && (bf16->text == "auto" || bf16->text == "full");
  const bool brain = !half && (automatic || (bf16 ? file.is_on("bf16") : false));
  file.say(half ? "fp16" : "bf16", "training", "mixed_precision", brain ? "bf16" : half ? "fp16" : "no");
  const bool sixteen = half || plain_half || file.is_on("load_in_8bit");
  file.say("bf16", "model", "dtype", brain || plain_bf16 ? "bfloat16" : sixteen ? "float16" : "float32");
}

/// BitsAndBytesConfig as loaders/model.py fills it.
void read_quantization(ForeignFile& file) {
  const auto adapter = file.map().text("adapter").value_or("");
  const bool four = file.is_on("load_in_4bit"), eight = file.is_on("load_in_8bit");
  const auto* kwargs = file.map().take("bnb_config_kwargs");
  if (adapter == "qlora" && !four) file.refuse("adapter", "qlora needs load_in_4bit: true, as axolotl checks");
  if (adapter == "lora" && eight) file.say("load_in_8bit", "quantization", "quant_type", "int8");
  if (adapter != "qlora" || !four) return;
  MapReader bnb(kwargs, file.map().place_of("bnb_config_kwargs"), file.map().findings());
  const auto say = [&](std::string_view theirs, std::string_view ours, std::string_view usual) {
    const auto given = bnb.text(theirs);
    file.job().say("quantization", ours, given.value_or(std::string(usual)), bnb.place_of(theirs).position);
  };
  say("bnb_4bit_quant_type", "quant_type", "nf4");
  say("bnb_4bit_use_double_quant", "double_quant", "true");
  say("bnb_4bit_quant_storage", "quant_storage", "bfloat16");
  say("bnb_4bit_compute_dtype", "compute_dtype", file.job().value("model", "dtype")->text);
  bnb.finish_foreign(std::array<std::string_view, 2>{"llm_int8_threshold", "llm_int8_has_fp16_weight"});
}

void read_adapter(ForeignFile& file) {
  if (!file.has("adapter")) return;
  file.planned_word("adapter", "", {"lora", "qlora"});
  file.say("adapter", "adapter", "type", "lora");
  file.copy("lora_r", "adapter", "r");
  file.copy("lora_alpha", "adapter", "lora_alpha");
  file.copy_or("lora_dropout", "adapter", "lora_dropout", "0");
  file.copy("peft_use_dora", "adapter", "use_dora");
  file.copy("peft_use_rslora", "adapter", "use_rslora");
  file.copy("lora_modules_to_save", "adapter", "modules_to_save");
  file.copy("lora_target_parameters", "adapter", "target_parameters");
  file.copy("lora_exclude_modules", "adapter", "exclude_modules");
  file.copy("peft_layers_to_transform", "adapter", "layers_to_transform");
  file.copy("peft_layers_pattern", "adapter", "layers_pattern");
  file.copy("peft_trainable_token_indices", "adapter", "trainable_token_indices");
  file.copy("peft_init_lora_weights", "adapter", "init_lora_weights");
  file.copy("lora_rank_pattern", "adapter", "rank_pattern");
  file.copy("lora_alpha_pattern", "adapter", "alpha_pattern");
  file.copy("peft_autocast_adapter_dtype", "adapter", "autocast_adapter_dtype");
  if (file.is_on("lora_target_linear")) {  // their names, beside those that are listed (loaders/adapter.py, 0.12)
    auto names = file.map().word_or_words("lora_target_modules").value_or(std::vector<std::string>{});
    std::erase(names, "all-linear");
    names.insert(names.begin(), "all-linear");
    file.say_list("lora_target_linear", "adapter", "target_modules", names);
  } else {
    file.copy("lora_target_modules", "adapter", "target_modules");
  }
  if (file.has("lora_model_dir"))
    file.warn("lora_model_dir", "the adapter that is loaded is not looked at: planned is what this file says of it");
  file.map().take("lora_alpha_pattern");
}

void read_checkpointing(ForeignFile& file) {
  const auto* node = file.map().take("gradient_checkpointing");
  const auto* kwargs = file.map().take("gradient_checkpointing_kwargs");
  if (!node) return;
  if (node->text.starts_with("offload"))
    return file.refuse("gradient_checkpointing", "activations on the host are not planned yet");
  if (!file.is_on("gradient_checkpointing")) return;
  MapReader options(kwargs, file.map().place_of("gradient_checkpointing_kwargs"), file.map().findings());
  say_checkpointing(file, "gradient_checkpointing", options.boolean("use_reentrant").value_or(false));
  options.finish_foreign({});
}

void read_attention(ForeignFile& file) {
  file.copy("attn_implementation", "training", "attn_implementation");
  if (file.is_on("flash_attention"))
    file.say("flash_attention", "training", "attn_implementation", "flash_attention_2");
  if (file.is_on("sdp_attention")) file.say("sdp_attention", "training", "attn_implementation", "sdpa");
  if (file.is_on("eager_attention")) file.say("eager_attention", "training", "attn_implementation", "eager");
  if (file.is_on("xformers_attention")) file.say("xformers_attention", "training", "attn_implementation", "xformers");
}

/// Plugins that stand in for the loss, and Liger's kernels, which are planned as the Trainer's use_liger_kernel has
/// them: all.
void read_kernels(ForeignFile& file) {
  bool cut = file.is_on("cut_cross_entropy");
  if (const auto* plugins = file.map().take("plugins"))
    for (const auto& plugin : plugins->items) {
      const bool cuts = plugin->text.ends_with("CutCrossEntropyPlugin");
      cut = cut || cuts;
      if (!cuts && !plugin->text.ends_with("LigerPlugin"))
        file.map().findings().warning("not-as-written", {"plugins", plugin->position},
                                      "what this plugin changes is not planned");
    }
  constexpr auto kLiger = std::to_array<std::string_view>(
      {"liger_fused_linear_cross_entropy", "liger_rms_norm", "liger_glu_activation", "liger_rope"});
  std::size_t on = 0;
  for (const std::string_view key : kLiger) on += file.is_on(key) ? 1U : 0U;
  const bool fused = file.is_on(kLiger[0]);
  for (const std::string_view key :
       {"liger_layer_norm", "liger_rms_norm_gated", "liger_use_token_scaling", "liger_cross_entropy", "liger_swiglu"})
    file.map().take(key);
  if (fused) file.say(kLiger[0], "training", "loss", "liger");
  if (on > 0 && on < kLiger.size())
    file.warn(fused ? kLiger[0] : "plugins",
              fused ? "all of Liger's kernels are planned, not only those that are switched on"
                    : "Liger's kernels without its loss are not planned: transformers' own take more");
  if (cut && !fused) {
    file.say("plugins", "training", "loss", "liger");
    file.warn("plugins", "Cut Cross Entropy is planned as Liger's loss and kernels, which keep chunks of logits");
  }
  if (file.is_on("chunked_cross_entropy")) {
    file.warn("chunked_cross_entropy", "planned without chunks, which takes more");
    file.map().take("chunked_cross_entropy_num_chunks");
  }
  for (const std::string_view key : kKernels)
    if (file.is_on(key)) file.warn(key, std::string(key) + " is planned without, which takes more");
}

void read_parallelism(ForeignFile& file) {
  if (file.has("fsdp") || file.has("fsdp_config") || file.has("deepspeed")) read_trainer_parallelism(file, true);
  std::int64_t ranks = 1;
  for (const std::string_view key :
       {"dp_shard_size", "dp_replicate_size", "tensor_parallel_size", "context_parallel_size"}) {
    const std::int64_t size = file.map().integer(key, {1, kMostRanks}).value_or(1);
    if (ranks * size > kMostRanks) return file.refuse(key, "the sizes multiply to more ranks than are planned");
    ranks *= size;
  }
  const Position at = file.map().place_of("dp_shard_size").position;
  if (ranks > 1) file.job().say("cluster", "world_size", std::to_string(ranks), at);
  const auto axis = [&](std::string_view key) {
    const auto* node = file.map().take(key);
    return scalar(node ? node->text : "1", node ? node->position : at);
  };
  if (file.has("tensor_parallel_size") || file.has("context_parallel_size"))
    file.job().set("cluster", "mesh",
                   map_of({{"tp", at, axis("tensor_parallel_size")}, {"cp", at, axis("context_parallel_size")}}, at));
}

}  // namespace

NodePtr read_axolotl(const TextNode& root, const ForeignContext& context, Findings& findings) {
  ForeignFile file("axolotl", root, context, findings);
  file.name_model("base_model");
  read_precision(file);
  read_quantization(file);
  read_adapter(file);
  file.copy_or("sequence_len", "training", "seq_len", "512");
  file.copy_or("micro_batch_size", "training", "micro_batch_size", "1");
  file.copy("gradient_accumulation_steps", "training", "gradient_accumulation_steps");
  file.copy_or("optimizer", "training", "optimizer", "adamw_torch_fused");
  read_low_rank_keys(file, "optimizer");
  file.copy("max_grad_norm", "training", "max_grad_norm");
  file.copy("weight_decay", "training", "weight_decay");
  if (const auto* tf32 = file.map().take("tf32"); tf32 && tf32->text != "auto") file.copy("tf32", "training", "tf32");
  read_checkpointing(file);
  read_attention(file);
  read_kernels(file);
  read_parallelism(file);
  if (file.map().number("val_set_size", {}).value_or(0) > 0) {
    const auto* own = file.map().take("eval_batch_size");
    const auto* usual = own ? own : file.job().value("training", "micro_batch_size");
    const Position at = file.map().place_of("val_set_size").position;
    file.job().set("training", "evaluation",
                   map_of({{"per_device_eval_batch_size", at, scalar(usual->text, usual->position)}}, at));
  }
  if (file.job().has("quantization", "quant_type") && !file.has("fsdp") && !file.has("fsdp_config"))
    file.warn("adapter",
              "while it loads, axolotl casts norms and embeddings to float32 and back, which is not planned");
  return file.finish({kAxolotlWithoutMemory}, kAxolotlNotSupported);
}

}  // namespace qlp
