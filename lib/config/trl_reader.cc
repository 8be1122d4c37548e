#include "config/trl_reader.h"

#include <array>
#include <string>

#include "config/trainer_keys.h"

namespace qlp {
namespace {

constexpr auto kTrlWithoutMemory =
    std::to_array<std::string_view>({"truncation_mode", "lora_task_type", "lora_alpha_pattern", "shuffle_dataset",
                                     "dataset_text_field", "dataset_kwargs", "dataset_num_proc", "eval_packing",
                                     "max_prompt_length", "pad_token", "streaming", "gradient_checkpointing_kwargs"});

constexpr std::string_view kPreference = "only supervised fine-tuning is planned";
constexpr auto kTrlNotSupported = std::to_array<NotSupported>({
    {"activation_offloading", "activations on the host are not planned yet"},
    {"beta", kPreference},
    {"loss_weights", kPreference},
    {"ref_model_init_kwargs", kPreference},
    {"num_generations", kPreference},
    {"reward_funcs", kPreference},
    {"use_vllm", kPreference},
    {"torch_compile", "compiled steps are not planned"},
    {"auto_find_batch_size", "give the size that it finds"},
    {"torch_empty_cache_steps", "it is not planned yet"},
});

/// bfloat16 unless the file says otherwise (base_config.py).
void read_precision(ForeignFile& file) {
  const bool half = file.is_on("fp16");
  const bool brain = file.has("bf16") ? file.is_on("bf16") : !half;
  if (!file.has("bf16") && !half)
    file.by_default("bf16", "training", "mixed_precision", "bf16");
  else
    file.say(half ? "fp16" : "bf16", "training", "mixed_precision", half ? "fp16" : brain ? "bf16" : "no");
  const std::string_view key = file.has("torch_dtype") ? "torch_dtype" : "dtype";
  const auto dtype = file.map().text(key);
  if (dtype == "auto")
    file.say(key, "model", "dtype", "bfloat16");
  else
    file.copy_or(key, "model", "dtype", "float32");
}

void read_quantization(ForeignFile& file) {
  if (file.is_on("load_in_8bit")) file.say("load_in_8bit", "quantization", "quant_type", "int8");
  if (!file.is_on("load_in_4bit")) return;
  file.copy_or("bnb_4bit_quant_type", "quantization", "quant_type", "nf4");
  file.copy_or("use_bnb_nested_quant", "quantization", "double_quant", "false");
  file.copy_or("bnb_4bit_quant_storage", "quantization", "quant_storage", "uint8");
}

void read_adapter(ForeignFile& file, bool zero3) {
  if (!file.is_on("use_peft")) {
    for (const std::string_view key : {"lora_r", "lora_alpha", "lora_dropout", "lora_target_modules",
                                       "lora_target_parameters", "lora_modules_to_save", "use_dora", "use_rslora"})
      file.map().take(key);
    return;
  }
  file.say("use_peft", "adapter", "type", "lora");
  file.copy_or("lora_r", "adapter", "r", "16");
  file.copy_or("lora_alpha", "adapter", "lora_alpha", "32");
  file.copy_or("lora_dropout", "adapter", "lora_dropout", "0.05");
  file.copy("lora_target_modules", "adapter", "target_modules");
  file.copy("lora_target_parameters", "adapter", "target_parameters");
  file.copy("lora_modules_to_save", "adapter", "modules_to_save");
  file.copy("use_dora", "adapter", "use_dora");
  file.copy("use_rslora", "adapter", "use_rslora");
  // sft_trainer.py: beside quantized weights what is trained is cast to bfloat16, under ZeRO-3 it stays as loaded.
  if (file.job().has("quantization", "quant_type"))
    file.say("use_peft", "adapter", "dtype", "bfloat16");
  else if (zero3)
    file.say("use_peft", "adapter", "autocast_adapter_dtype", "false");
}

void read_checkpointing(ForeignFile& file, bool forced_reentrant) {
  if (!file.map().boolean("gradient_checkpointing").value_or(true)) return;
  MapReader options(file.map().take("gradient_checkpointing_kwargs"),
                    file.map().place_of("gradient_checkpointing_kwargs"), file.map().findings());
  const bool reentrant = options.boolean("use_reentrant").value_or(false);
  options.finish_foreign({});
  say_checkpointing(file, "gradient_checkpointing", reentrant || forced_reentrant);
}

/// TRL made all logits before 1.10, and those of some tokens at a time from then on.
void read_loss(ForeignFile& file) {
  const std::string type = file.planned_word("loss_type", "nll", {"nll", "chunked_nll"});
  if (type == "chunked_nll") return file.say("loss_type", "training", "loss", "chunked");
  const bool fused = file.is_on("use_liger_kernel");
  file.say("loss_type", "training", "loss", fused ? "liger" : "plain");
  if (!fused && !file.is_overridden("training", "loss"))
    file.warn("loss_type", "planned with all logits at once; TRL from 1.10 on makes some at a time and takes less",
              "use_liger_kernel: true is planned as it is");
}

}  // namespace

NodePtr read_trl(const TextNode& root, const ForeignContext& context, Findings& findings) {
  ForeignFile file("TRL", root, context, findings);
  file.name_model("model_name_or_path");
  read_precision(file);
  read_quantization(file);
  read_trainer_keys(file);
  const std::string_view length = file.has("max_seq_length") ? "max_seq_length" : "max_length";
  file.copy_or(length, "training", "seq_len", "1024");
  file.copy("attn_implementation", "training", "attn_implementation");
  read_loss(file);
  const bool zero3 = is_zero3(launched_plan(file));
  read_adapter(file, zero3);
  read_trainer_parallelism(file, trainer_defaults_to_fsdp1(context.stack));
  read_checkpointing(file, zero3 && file.is_on("use_peft"));
  return file.finish({kTrlWithoutMemory, trainer_keys_without_memory()}, kTrlNotSupported);
}

}  // namespace qlp
