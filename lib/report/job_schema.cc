#include "report/schema_parts.h"

namespace qlp {

std::string_view job_schema() {
  return R"json(    "job": {
      "type": "object",
      "description": "the job with defaults filled in, under the keys of the job file",
      "required": ["model", "training", "cluster", "stack", "parameters"],
      "properties": {
        "model": {
          "type": "object",
          "required": [
            "name", "model_type", "dtype", "loading", "hidden_size", "intermediate_size",
            "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
            "vocab_size", "max_position_embeddings", "tie_word_embeddings", "qkv_bias",
            "attention_bias", "mlp_bias", "rope_type", "partial_rotary_factor",
            "rms_norm_eps", "rope_theta"
          ],
          "properties": {
            "name": {"type": "string"},
            "model_type": {"type": "string"},
            "dtype": {"type": "string"},
            "loading": {"enum": ["gpu", "cpu", "rank0", "auto"]},
            "hidden_size": {"type": "integer", "minimum": 1},
            "intermediate_size": {"type": "integer", "minimum": 1},
            "num_hidden_layers": {"type": "integer", "minimum": 1},
            "num_attention_heads": {"type": "integer", "minimum": 1},
            "num_key_value_heads": {"type": "integer", "minimum": 1},
            "head_dim": {"type": "integer", "minimum": 1},
            "vocab_size": {"type": "integer", "minimum": 1},
            "max_position_embeddings": {"type": "integer"},
            "tie_word_embeddings": {"type": "boolean"},
            "qkv_bias": {"type": "boolean"},
            "attention_bias": {"type": "boolean"},
            "mlp_bias": {"type": "boolean"},
            "experts": {
              "type": "object",
              "additionalProperties": false,
              "required": ["num_experts", "num_experts_per_tok", "intermediate_size", "norm_topk_prob", "decoder_sparse_step"],
              "properties": {
                "num_experts": {"type": "integer", "minimum": 1},
                "num_experts_per_tok": {"type": "integer", "minimum": 1},
                "intermediate_size": {"type": "integer", "minimum": 1},
                "norm_topk_prob": {"type": "boolean"},
                "decoder_sparse_step": {"type": "integer", "minimum": 1},
                "mlp_only_layers": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                "shared_expert_intermediate_size": {"type": "integer", "minimum": 1}
              }
            },
            "sliding_window": {"type": "integer"},
            "max_window_layers": {"type": "integer"},
            "sliding_window_pattern": {"type": "integer"},
            "no_rope_layer_interval": {"type": "integer"},
            "attn_logit_softcapping": {"type": "number"},
            "final_logit_softcapping": {"type": "number"},
            "rope_type": {"type": "string"},
            "original_max_position_embeddings": {"type": "integer"},
            "partial_rotary_factor": {"type": "number"},
            "rms_norm_eps": {"type": "number"},
            "rope_theta": {"type": "number"},
            "rope_scaling": {
              "type": "object",
              "description": "how rotary frequencies are stretched; absent: they are not",
              "additionalProperties": false,
              "required": ["rope_type"],
              "properties": {
                "rope_type": {"enum": ["default", "linear", "dynamic", "yarn", "llama3", "longrope"]},
                "factor": {"type": "number"},
                "original_max_position_embeddings": {"type": "integer"},
                "low_freq_factor": {"type": "number"},
                "high_freq_factor": {"type": "number"},
                "beta_fast": {"type": "number"},
                "beta_slow": {"type": "number"},
                "truncate": {"type": "boolean"},
                "mscale": {"type": "number"},
                "mscale_all_dim": {"type": "number"},
                "attention_factor": {"type": "number"},
                "short_factor": {"type": "array", "items": {"type": "number"}},
                "long_factor": {"type": "array", "items": {"type": "number"}}
              }
            },
            "query_pre_attn_scalar": {"type": "number"},
            "embedding_multiplier": {"type": "number"},
            "residual_multiplier": {"type": "number"},
            "attention_multiplier": {"type": "number"},
            "logits_scaling": {"type": "number"},
            "logit_scale": {"type": "number"},
            "rope_local_base_freq": {"type": "number"},
            "checkpoint_dtype": {"type": "string"},
            "mxfp4_experts": {"type": "boolean"},
            "stacked_experts": {"type": "boolean"}
          }
        },
        "quantization": {
          "type": "object",
          "description": "absent: not quantized",
          "required": [
            "quant_type", "double_quant", "quant_storage", "compute_dtype", "prepare_kbit", "trl_bf16_cast"
          ],
          "properties": {
            "quant_type": {"enum": ["nf4", "fp4", "int8"]},
            "llm_int8_threshold": {"type": "number", "description": "of int8"},
            "double_quant": {"type": "boolean"},
            "quant_storage": {"type": "string"},
            "compute_dtype": {"type": "string"},
            "prepare_kbit": {"type": "boolean"},
            "trl_bf16_cast": {"type": "boolean"}
          }
        },
        "adapter": {
          "type": "object",
          "description": "absent: all parameters are trained",
          "required": [
            "type", "r", "lora_alpha", "lora_dropout", "use_dora", "use_rslora", "target_modules",
            "autocast_adapter_dtype"
          ],
          "properties": {
            "type": {"const": "lora"},
            "r": {"type": "integer", "minimum": 1},
            "lora_alpha": {"type": "number"},
            "lora_dropout": {"type": "number"},
            "use_dora": {"type": "boolean"},
            "use_rslora": {"type": "boolean"},
            "target_modules": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "exclude_modules": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "layers_to_transform": {"type": "array", "items": {"type": "integer", "minimum": 0}},
            "layers_pattern": {"type": "array", "items": {"type": "string"}},
            "target_parameters": {"type": "array", "items": {"type": "string"}},
            "modules_to_save": {"type": "array", "items": {"type": "string"}},
            "trainable_token_indices": {"type": "array", "items": {"type": "integer", "minimum": 0}},
            "rank_pattern": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
            "alpha_pattern": {"type": "object", "additionalProperties": {"type": "number"}},
            "bias": {"type": "string", "enum": ["all", "lora_only"], "description": "absent: none"},
            "lora_bias": {"type": "boolean", "description": "absent: false"},
            "autocast_adapter_dtype": {"type": "boolean"},
            "dtype": {"type": "string"}
          }
        },
        "training": {
          "type": "object",
          "required": [
            "micro_batch_size", "seq_len", "gradient_accumulation_steps", "gradient_checkpointing",
            "mixed_precision", "optimizer", "max_grad_norm", "attn_implementation", "loss", "num_steps"
          ],
          "properties": {
            "micro_batch_size": {"type": "integer", "minimum": 1},
            "seq_len": {"type": "integer", "minimum": 1},
            "gradient_accumulation_steps": {"type": "integer", "minimum": 1},
            "sync_each_batch": {"type": "boolean"},
            "gradient_checkpointing": {
              "description": "false, or which variant",
              "oneOf": [
                {"const": false},
                {"type": "object", "required": ["use_reentrant"], "properties": {"use_reentrant": {"type": "boolean"}}}
              ]
            },
            "mixed_precision": {"enum": ["bf16", "fp16", "no"]},
            "tf32": {"type": "boolean"},
            "optimizer": {"type": "string"},
            "weight_decay": {"type": "number"},
            "optim_target_modules": {
              "description": "of optimizers that project weights",
              "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
            },
            "optim_args": {
              "type": "object",
              "required": ["rank", "proj_type", "update_proj_gap", "scale"],
              "properties": {
                "rank": {"type": "integer", "minimum": 1},
                "scale_type": {"enum": ["channel", "tensor"]},
                "proj_type": {"enum": ["std", "reverse_std", "left", "right", "full"]},
                "update_proj_gap": {"type": "integer", "minimum": 1},
                "scale": {"type": "number"}
              }
            },
            "max_grad_norm": {"type": "number"},
            "attn_implementation": {"type": "string"},
            "loss": {"type": "string"},
            "num_steps": {"type": "integer", "minimum": 1},
            "evaluation": {
              "type": "object",
              "description": "absent: none",
              "required": ["per_device_eval_batch_size", "prediction_loss_only"],
              "properties": {
                "per_device_eval_batch_size": {"type": "integer", "minimum": 1},
                "prediction_loss_only": {"type": "boolean"},
                "num_samples": {"type": "integer", "minimum": 1},
                "eval_accumulation_steps": {"type": "integer", "minimum": 1}
              }
            },
            "save": {
              "type": "object",
              "description": "absent: nothing is saved",
              "required": ["state_dict_type"],
              "properties": {"state_dict_type": {"const": "FULL_STATE_DICT"}}
            },
            "checkpoint": {
              "type": "object",
              "description": "absent: none",
              "required": ["state_dict_type"],
              "properties": {"state_dict_type": {"enum": ["FULL_STATE_DICT", "SHARDED_STATE_DICT", "auto"]}}
            }
          }
        },
        "cluster": {
          "type": "object",
          "required": [
            "gpu", "world_size", "gpus_per_node", "mesh", "inter_node_bytes_per_second", "used_by_others_bytes", "margin"
          ],
          "properties": {
            "gpu": {
              "type": "object",
              "required": ["name", "capacity_bytes", "capacity_source", "compute_capability", "sm_count"],
              "properties": {
                "name": {"type": "string"},
                "capacity_bytes": {"$ref": "#/$defs/bytes"},
                "capacity_source": {"type": "string"},
                "compute_capability": {"type": "string", "pattern": "^[0-9]+\\.[0-9]$"},
                "sm_count": {"type": "integer", "minimum": 1}
              }
            },
            "machine": {
              "type": "object",
              "description": "with --machine: what was measured on it takes the place of models",
              "additionalProperties": false,
              "required": ["gpu", "versions"],
              "properties": {
                "gpu": {"type": "string", "description": "as the driver calls it"},
                "versions": {"type": "array", "items": {"type": "string"}},
                "time": {"type": "string"},
                "host": {"type": "string"}
              }
            },
            "world_size": {"type": "integer", "minimum": 1},
            "gpus_per_node": {"type": "integer", "minimum": 1},
            "intra_node_bytes_per_second": {"type": "integer", "minimum": 1, "description": "of a GPU in one direction"},
            "inter_node_bytes_per_second": {"type": "integer", "minimum": 1, "description": "of a GPU in one direction"},
            "mesh": {
              "type": "object",
              "description": "parallelism within a replica of the model; the rest of world_size is data parallel",
              "additionalProperties": false,
              "required": ["tp", "cp", "pp", "ep"],
              "properties": {
                "tp": {"type": "integer", "minimum": 1},
                "cp": {"type": "integer", "minimum": 1},
                "pp": {"type": "integer", "minimum": 1},
                "ep": {"type": "integer", "minimum": 1},
                "cp_comm_strategy": {
                  "enum": ["allgather", "alltoall"],
                  "description": "how keys and values reach the ranks that share a sequence"
                }
              }
            },
            "used_by_others_bytes": {"$ref": "#/$defs/bytes"},
            "host_memory_bytes": {"$ref": "#/$defs/bytes", "description": "of a node; absent: unknown"},
            "margin": {
              "type": "number",
              "description": "share of capacity that is kept free",
              "minimum": 0,
              "maximum": 1
            }
          }
        },
        "allocator": {"type": "string", "description": "as in PYTORCH_CUDA_ALLOC_CONF"},
        "stack": {
          "type": "object",
          "required": ["torch", "transformers", "peft", "accelerate", "bitsandbytes", "deepspeed"],
          "properties": {
            "torch": {"type": "string"},
            "transformers": {"type": "string"},
            "peft": {"type": "string"},
            "accelerate": {"type": "string"},
            "bitsandbytes": {"type": "string"},
            "deepspeed": {"type": "string"}
          }
        },
        "parameters": {
          "type": "object",
          "required": ["total", "trainable"],
          "properties": {
            "total": {"type": "integer", "minimum": 1, "description": "adapters included"},
            "trainable": {"type": "integer", "minimum": 0}
          }
        }
      }
    },
)json";
}

}  // namespace qlp
