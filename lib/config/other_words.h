// What other tools call the keys and values of a job file: for the hint that a user of theirs needs.
#pragma once

#include <array>
#include <string_view>

namespace qlp {

struct OtherWord {
  std::string_view theirs;
  std::string_view ours;
};

constexpr std::array<OtherWord, 37> kOtherWords{{
    // transformers' TrainingArguments and from_pretrained
    {"per_device_train_batch_size", "micro_batch_size"},
    {"optim", "optimizer"},
    {"bf16", "mixed_precision"},
    {"fp16", "mixed_precision"},
    {"bf16", "bfloat16"},
    {"fp16", "float16"},
    {"fp32", "float32"},
    {"bfloat16", "bf16"},
    {"float16", "fp16"},
    {"torch_dtype", "dtype"},
    {"attention", "attn_implementation"},
    {"flash_attention", "attn_implementation"},
    // bitsandbytes' BitsAndBytesConfig
    {"load_in_4bit", "quant_type"},
    {"load_in_8bit", "quant_type"},
    {"bnb_4bit_quant_type", "quant_type"},
    {"bnb_4bit_use_double_quant", "double_quant"},
    {"bnb_4bit_quant_storage", "quant_storage"},
    {"bnb_4bit_compute_dtype", "compute_dtype"},
    // PEFT, LLaMA-Factory, axolotl
    {"peft_type", "type"},
    {"lora_r", "r"},
    {"lora_rank", "r"},
    {"alpha", "lora_alpha"},
    {"dropout", "lora_dropout"},
    {"lora_target", "target_modules"},
    {"lora_target_modules", "target_modules"},
    // TRL, axolotl, LLaMA-Factory, torchtune
    {"max_length", "seq_len"},
    {"max_seq_length", "seq_len"},
    {"sequence_len", "seq_len"},
    {"cutoff_len", "seq_len"},
    {"batch_size", "micro_batch_size"},
    {"base_model", "config"},
    {"model_name_or_path", "config"},
    {"enable_activation_checkpointing", "gradient_checkpointing"},
    // DeepSpeed, accelerate
    {"train_micro_batch_size_per_gpu", "micro_batch_size"},
    {"gradient_clipping", "max_grad_norm"},
    {"num_processes", "world_size"},
    {"num_gpus", "world_size"},
}};

}  // namespace qlp
