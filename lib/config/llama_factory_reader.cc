#include "config/llama_factory_reader.h"

#include <array>
#include <string>

#include "base/text.h"
#include "config/trainer_keys.h"

namespace qlp {
namespace {

constexpr auto kLlamaFactoryWithoutMemory = std::to_array<std::string_view>({"template",
                                                                             "dataset*",
                                                                             "eval_dataset",
                                                                             "media_dir",
                                                                             "tokenized_path",
                                                                             "cutoff_len",
                                                                             "mask_history",
                                                                             "train_on_prompt",
                                                                             "streaming",
                                                                             "buffer_size",
                                                                             "mix_strategy",
                                                                             "interleave_probs",
                                                                             "overwrite_cache",
                                                                             "max_samples",
                                                                             "val_size",
                                                                             "neat_packing",
                                                                             "tool_format",
                                                                             "default_system",
                                                                             "enable_thinking",
                                                                             "ignore_pad_token_for_loss",
                                                                             "plot_loss",
                                                                             "cache_dir",
                                                                             "use_fast_tokenizer",
                                                                             "split_special_tokens",
                                                                             "hf_hub_token",
                                                                             "ms_hub_token",
                                                                             "om_hub_token",
                                                                             "print_param_status",
                                                                             "use_swanlab",
                                                                             "swanlab_*",
                                                                             "loraplus_*",
                                                                             "compute_accuracy",
                                                                             "early_stopping_steps",
                                                                             "include_effective_tokens_per_second",
                                                                             "low_cpu_mem_usage",
                                                                             "create_new_adapter",
                                                                             "preprocessing_*",
                                                                             "packing"});

constexpr std::string_view kMore = "it trains the embedding and the head; name them in modules_to_save of a job file";
constexpr auto kLlamaFactoryNotSupported = std::to_array<NotSupported>({
    {"use_unsloth", "Unsloth's own layers are not planned"},
    {"use_unsloth_gc", "activations on the host are not planned yet"},
    {"use_galore", "say it with optim: galore_adamw"},
    {"use_apollo", "say it with optim: apollo_adamw"},
    {"use_badam", "BAdam is not planned"},
    {"use_adam_mini", "Adam-mini is not planned"},
    {"use_muon", "LLaMA-Factory's own Muon is not planned"},
    {"use_llama_pro", "it changes which parameters are trained; not planned yet"},
    {"use_asft_loss", "it needs a second model"},
    {"use_dft_loss", "it is not planned"},
    {"use_kt", "KTransformers is not planned"},
    {"pissa_init", "it changes the weights that are kept; not planned yet"},
    {"upcast_layernorm", "norms alone in float32 are not planned; see quantization.prepare_kbit of a job file"},
    {"upcast_lmhead_output", "it is not planned yet"},
    {"shift_attn", "LongLoRA is not planned"},
    {"mixture_of_depths", "it is not planned"},
    {"resize_vocab", kMore},
    {"add_tokens", kMore},
    {"add_special_tokens", kMore},
    {"new_special_tokens_config", kMore},
    {"adapter_name_or_path", "an adapter that is trained on is not looked at; leave it out to plan a new one"},
    {"fp8", "8-bit float matrix products are not planned yet"},
    {"use_v1_kernels", "its kernels are not planned"},
    {"freeze_vision_tower", "only language models are planned"},
});

/// The dtype in which products run, and the weights are loaded (hparams/parser.py, model/patcher.py).
std::string_view read_precision(ForeignFile& file) {
  const bool bf16 = file.is_on("bf16"), half = file.is_on("fp16"), pure = file.is_on("pure_bf16");
  file.say(half ? "fp16" : "bf16", "training", "mixed_precision", pure ? "no" : bf16 ? "bf16" : half ? "fp16" : "no");
  // Without a word of the file they are what the checkpoint is in, which is bfloat16 nowadays.
  return half ? "float16" : "bfloat16";
}

void read_quantization(ForeignFile& file, std::string_view dtype) {
  const auto bits = file.map().integer("quantization_bit", {1, 8});
  const auto method = file.map().text("quantization_method").value_or("bnb");
  if (!bits) return;
  if ((method != "bnb" && method != "bitsandbytes") || (*bits != 4 && *bits != 8))
    return file.refuse("quantization_bit", "only bitsandbytes in 4 or 8 bits is planned");
  if (*bits == 8) return file.say("quantization_bit", "quantization", "quant_type", "int8");
  file.copy_or("quantization_type", "quantization", "quant_type", "nf4");
  file.copy_or("double_quantization", "quantization", "double_quant", "true");
  file.say("quantization_bit", "quantization", "compute_dtype", dtype);
  file.say("quantization_bit", "quantization", "quant_storage", dtype);
}

void read_adapter(ForeignFile& file) {
  file.say("finetuning_type", "adapter", "type", "lora");
  file.copy_or("lora_rank", "adapter", "r", "8");
  file.copy("lora_alpha", "adapter", "lora_alpha");
  const auto r = file.map().integer("lora_rank", {1, 1 << 16}).value_or(8);
  if (!file.has("lora_alpha")) file.by_default("lora_alpha", "adapter", "lora_alpha", std::to_string(2 * r));
  file.copy_or("lora_dropout", "adapter", "lora_dropout", "0");
  file.copy("use_dora", "adapter", "use_dora");
  file.copy("use_rslora", "adapter", "use_rslora");
  file.copy_list("additional_target", "adapter", "modules_to_save");
  const auto target = file.map().text("lora_target");
  if (!target || *target == "all")
    file.say("lora_target", "adapter", "target_modules", "all-linear");
  else
    file.copy_list("lora_target", "adapter", "target_modules");
}

void read_attention(ForeignFile& file) {
  const auto word = file.map().text("flash_attn").value_or("auto");
  if (word == "fa2") file.say("flash_attn", "training", "attn_implementation", "flash_attention_2");
  if (word == "sdpa") file.say("flash_attn", "training", "attn_implementation", "sdpa");
  if (word == "disabled") file.say("flash_attn", "training", "attn_implementation", "eager");
  if (word == "fa3") file.say("flash_attn", "training", "attn_implementation", "flash_attention_3");
}

}  // namespace

NodePtr read_llama_factory(const TextNode& root, const ForeignContext& context, Findings& findings) {
  ForeignFile file("LLaMA-Factory", root, context, findings);
  file.name_model("model_name_or_path");
  file.planned_word("stage", "sft", {"sft", "pt"});
  const std::string type = file.planned_word("finetuning_type", "lora", {"lora", "full"});
  const std::string_view dtype = read_precision(file);
  read_quantization(file, dtype);
  if (type == "lora") read_adapter(file);
  read_trainer_keys(file);
  file.copy_or("cutoff_len", "training", "seq_len", "2048");
  if (file.is_on("enable_liger_kernel")) file.say("enable_liger_kernel", "training", "loss", "liger");
  read_attention(file);
  read_trainer_parallelism(file, trainer_defaults_to_fsdp1(context.stack));
  const auto launched = launched_plan(file);
  // What is trained is float32, as a whole model is then, except under ZeRO-3, which keeps float32 itself
  // (model/adapter.py, init_adapter).
  const bool wide = type == "full" && !file.is_on("pure_bf16") && !is_zero3(launched);
  file.say("finetuning_type", "model", "dtype", wide ? "float32" : dtype);
  if (!file.is_on("disable_gradient_checkpointing")) {
    const bool reentrant = file.map().boolean("use_reentrant_gc").value_or(true);
    say_checkpointing(file, "disable_gradient_checkpointing", reentrant && !is_fsdp2(launched));
  }
  return file.finish({kLlamaFactoryWithoutMemory, trainer_keys_without_memory()}, kLlamaFactoryNotSupported);
}

}  // namespace qlp
