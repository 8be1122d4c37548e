#include "report/report_schema.h"

namespace qlp {

std::string_view report_schema() {
  return R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$id": "urn:qlora-plan:report:1",
  "title": "qlora-plan report",
  "description": "What a fine-tuning job takes on every rank under every plan. Amounts are integer bytes. A field that does not apply is absent. Minor versions add fields only.",
  "type": "object",
  "required": ["schema_version", "tool", "job", "verdict", "plans", "diagnostics"],
  "properties": {
    "schema_version": {"type": "string", "pattern": "^1\\.[0-9]+$"},
    "tool": {
      "type": "object",
      "required": ["name", "version"],
      "properties": {"name": {"const": "qlora-plan"}, "version": {"type": "string"}}
    },
    "stamp": {
      "type": "object",
      "description": "only with --stamp",
      "required": ["time", "host", "job_file"],
      "properties": {"time": {"type": "string"}, "host": {"type": "string"}, "job_file": {"type": "string"}}
    },
    "job": {
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
            "attention_bias", "mlp_bias", "rope_type", "partial_rotary_factor"
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
                "decoder_sparse_step": {"type": "integer", "minimum": 1}
              }
            },
            "sliding_window": {"type": "integer"},
            "attn_logit_softcapping": {"type": "number"},
            "final_logit_softcapping": {"type": "number"},
            "rope_type": {"type": "string"},
            "original_max_position_embeddings": {"type": "integer"},
            "partial_rotary_factor": {"type": "number"},
            "checkpoint_dtype": {"type": "string"}
          }
        },
        "quantization": {
          "type": "object",
          "description": "absent: not quantized",
          "required": [
            "quant_type", "double_quant", "quant_storage", "compute_dtype", "prepare_kbit", "trl_bf16_cast"
          ],
          "properties": {
            "quant_type": {"enum": ["nf4", "fp4"]},
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
            "modules_to_save": {"type": "array", "items": {"type": "string"}},
            "rank_pattern": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
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
            "optimizer": {"type": "string"},
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
                "ep": {"type": "integer", "minimum": 1}
              }
            },
            "used_by_others_bytes": {"$ref": "#/$defs/bytes"},
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
    "verdict": {"enum": ["fits", "does_not_fit"], "description": "fits if any plan does"},
    "recommended": {"type": "string", "description": "name of the plan to take; absent if none fits"},
    "resources": {
      "type": "object",
      "description": "what a scheduler must give the recommended plan",
      "required": ["gpus", "nodes", "gpus_per_node", "gpu_memory_bytes"],
      "properties": {
        "gpus": {"type": "integer", "minimum": 1},
        "nodes": {"type": "integer", "minimum": 1},
        "gpus_per_node": {"type": "integer", "minimum": 1},
        "gpu_memory_bytes": {
          "$ref": "#/$defs/bytes",
          "description": "each GPU must give, on CUDA's scale, margin included"
        },
        "gpu_memory_mib": {"type": "integer", "minimum": 0, "description": "the same on nvidia-smi's scale"},
        "host_memory_per_node_bytes": {
          "$ref": "#/$defs/bytes",
          "description": "of the processes; what the system keeps of files comes on top"
        }
      }
    },
    "plans": {"type": "array", "items": {"$ref": "#/$defs/plan"}},
    "findings": {
      "type": "array",
      "description": "of `check`, errors first",
      "items": {
        "type": "object",
        "required": ["severity", "code", "plan", "message"],
        "properties": {
          "severity": {"enum": ["note", "warning", "error"]},
          "code": {"type": "string", "description": "of the rule, or of the reason why the plan cannot run"},
          "plan": {"type": "string"},
          "message": {"type": "string"},
          "evidence_bytes": {"$ref": "#/$defs/bytes", "description": "on a rank, that it is about"},
          "key_path": {"type": "string"},
          "hint": {"type": "string", "description": "a way out that was not run"},
          "fix": {
            "type": "object",
            "description": "a change to the job, and what it gave in a dry run",
            "required": ["text", "plan", "peak_allocated_bytes", "device_used_bytes", "fits"],
            "properties": {
              "text": {"type": "string"},
              "plan": {"type": "string"},
              "peak_allocated_bytes": {"$ref": "#/$defs/bytes"},
              "device_used_bytes": {"$ref": "#/$defs/bytes"},
              "fits": {"type": "boolean"},
              "saving_bytes": {"type": "integer", "description": "of the allocated peak; absent if there is none without the fix"}
            }
          }
        }
      }
    },
    "diagnostics": {"$ref": "#/$defs/diagnostics"}
  },
  "$defs": {
    "bytes": {"type": "integer", "minimum": 0},
    "range": {
      "type": "object",
      "required": ["min", "max"],
      "additionalProperties": false,
      "properties": {"min": {"$ref": "#/$defs/bytes"}, "max": {"$ref": "#/$defs/bytes"}}
    },
    "seconds": {"type": "number", "minimum": 0},
    "figures": {
      "type": "object",
      "required": ["requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes"],
      "properties": {
        "requested_bytes": {"$ref": "#/$defs/bytes", "description": "of tensors"},
        "allocated_bytes": {"$ref": "#/$defs/bytes", "description": "of blocks, rounded to 512 bytes"},
        "active_bytes": {"$ref": "#/$defs/bytes", "description": "allocated, and blocks that wait for a stream"},
        "reserved_bytes": {"$ref": "#/$defs/bytes", "description": "of segments"}
      }
    },
    "categories": {
      "type": "object",
      "description": "allocated bytes",
      "required": [
        "parameters", "quant_state", "adapter", "gradients", "optimizer_state", "gathered_weights",
        "activations", "logits_and_loss", "gradient_temporaries", "communication_buffers", "workspace"
      ],
      "properties": {
        "parameters": {"$ref": "#/$defs/bytes"},
        "quant_state": {"$ref": "#/$defs/bytes"},
        "adapter": {"$ref": "#/$defs/bytes"},
        "gradients": {"$ref": "#/$defs/bytes"},
        "optimizer_state": {"$ref": "#/$defs/bytes"},
        "gathered_weights": {"$ref": "#/$defs/bytes"},
        "activations": {"$ref": "#/$defs/bytes"},
        "logits_and_loss": {"$ref": "#/$defs/bytes"},
        "gradient_temporaries": {"$ref": "#/$defs/bytes"},
        "communication_buffers": {"$ref": "#/$defs/bytes"},
        "workspace": {"$ref": "#/$defs/bytes"}
      }
    },
    "peak": {
      "type": "object",
      "required": [
        "phase", "phase_name", "requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes",
        "device_used_bytes", "capacity_bytes", "headroom_bytes", "categories"
      ],
      "properties": {
        "phase": {"type": "string", "description": "of the allocated peak"},
        "phase_name": {"type": "string", "description": "its name in phases"},
        "requested_bytes": {"$ref": "#/$defs/bytes", "description": "of tensors"},
        "allocated_bytes": {"$ref": "#/$defs/bytes", "description": "of blocks, rounded to 512 bytes"},
        "active_bytes": {"$ref": "#/$defs/bytes", "description": "allocated, and blocks that wait for a stream"},
        "reserved_bytes": {"$ref": "#/$defs/bytes", "description": "of segments"},
        "active": {"$ref": "#/$defs/range", "description": "where it depends on how far the GPU lags"},
        "reserved": {"$ref": "#/$defs/range", "description": "where it depends on how far the GPU lags"},
        "device_used_bytes": {"$ref": "#/$defs/bytes", "description": "the most reserved, terms outside that find room and what others use"},
        "required_reserved_bytes": {
          "$ref": "#/$defs/bytes",
          "description": "least reserved with which the job runs; with --required"
        },
        "required_device_bytes": {"$ref": "#/$defs/bytes"},
        "capacity_bytes": {"$ref": "#/$defs/bytes", "description": "what CUDA gives"},
        "headroom_bytes": {
          "type": "integer",
          "description": "capacity - margin - device used, or - required where it was searched"
        },
        "categories": {"$ref": "#/$defs/categories"}
      }
    },
    "persistent": {
      "type": "object",
      "description": "held after the last step",
      "required": ["requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes", "categories"],
      "properties": {
        "requested_bytes": {"$ref": "#/$defs/bytes", "description": "of tensors"},
        "allocated_bytes": {"$ref": "#/$defs/bytes", "description": "of blocks, rounded to 512 bytes"},
        "active_bytes": {"$ref": "#/$defs/bytes", "description": "allocated, and blocks that wait for a stream"},
        "reserved_bytes": {"$ref": "#/$defs/bytes", "description": "of segments"},
        "categories": {"$ref": "#/$defs/categories"}
      }
    },
    "phase": {
      "type": "object",
      "required": ["name", "phase", "peak", "held", "host"],
      "properties": {
        "name": {"type": "string"},
        "phase": {
          "enum": [
            "load", "adapter", "prepare", "forward", "backward", "optimizer_step", "zero_grad",
            "evaluation", "save", "end"
          ]
        },
        "peak": {"$ref": "#/$defs/figures"},
        "held": {"$ref": "#/$defs/figures", "description": "at its end"},
        "host": {
          "type": "object",
          "description": "tensors of the process in host memory, pinned blocks included",
          "required": ["peak_bytes", "held_bytes"],
          "properties": {"peak_bytes": {"$ref": "#/$defs/bytes"}, "held_bytes": {"$ref": "#/$defs/bytes"}}
        },
        "categories": {"$ref": "#/$defs/categories"},
        "top_tensors": {"type": "array", "items": {"$ref": "#/$defs/tensor"}}
      }
    },
    "tensor": {
      "type": "object",
      "required": ["category", "count", "requested_bytes", "allocated_bytes"],
      "properties": {
        "category": {
          "enum": [
            "parameters", "quant_state", "adapter", "gradients", "optimizer_state", "gathered_weights",
            "activations", "logits_and_loss", "gradient_temporaries", "communication_buffers",
            "workspace"
          ]
        },
        "op": {"type": "string", "description": "its maker"},
        "module": {"type": "string"},
        "tensor": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "requested_bytes": {"$ref": "#/$defs/bytes"},
        "allocated_bytes": {"$ref": "#/$defs/bytes"}
      }
    },
    "host_rank": {
      "type": "object",
      "description": "host memory of one process when it holds the most",
      "required": ["phase_name", "peak_bytes", "pinned_bytes", "mapped_bytes", "categories"],
      "properties": {
        "phase_name": {"type": "string"},
        "peak_bytes": {"$ref": "#/$defs/bytes", "description": "tensors in pageable memory and blocks of pinned memory"},
        "pinned_bytes": {"$ref": "#/$defs/bytes", "description": "page-locked part, with blocks that are kept free"},
        "mapped_bytes": {"$ref": "#/$defs/bytes", "description": "most of checkpoint files it has mapped, not in the peak"},
        "categories": {"$ref": "#/$defs/categories"}
      }
    },
    "plan": {
      "type": "object",
      "description": "the figures are those of the worst rank; a plan that cannot run has none",
      "required": ["name", "options", "loading", "applicable", "fits", "diagnostics"],
      "properties": {
        "name": {"type": "string"},
        "options": {"type": "object", "description": "under the names of its runtime"},
        "mistake": {
          "type": "object",
          "description": "present where the plan is a mistake, planned on request",
          "required": ["meant", "what"],
          "properties": {
            "meant": {"type": "string", "description": "the plan to take instead"},
            "what": {"type": "string"}
          }
        },
        "loading": {"enum": ["gpu", "cpu", "rank0"], "description": "where the weights arrive"},
        "applicable": {"type": "boolean"},
        "reason": {"type": "string", "description": "why the plan cannot run"},
        "fits": {"type": "boolean"},
        "cache_given_back": {"type": "boolean", "description": "fits only because PyTorch frees its cached segments"},
        "rank": {"type": "integer", "minimum": 0},
        "peak": {"$ref": "#/$defs/peak", "description": "over the whole run, load included"},
        "training_peak": {"$ref": "#/$defs/peak", "description": "from the first forward on"},
        "persistent": {"$ref": "#/$defs/persistent"},
        "phases": {"type": "array", "items": {"$ref": "#/$defs/phase"}},
        "top_tensors": {
          "type": "array",
          "description": "alive at the peak, largest first",
          "items": {"$ref": "#/$defs/tensor"}
        },
        "ranks": {
          "type": "array",
          "description": "where ranks differ, the worst first; else all are as above",
          "items": {
            "type": "object",
            "required": ["rank", "peak", "training_peak", "persistent", "phases", "top_tensors"],
            "properties": {
              "rank": {"type": "integer", "minimum": 0},
              "peak": {"$ref": "#/$defs/peak", "description": "over the whole run, load included"},
              "training_peak": {"$ref": "#/$defs/peak", "description": "from the first forward on"},
              "persistent": {"$ref": "#/$defs/persistent"},
              "phases": {"type": "array", "items": {"$ref": "#/$defs/phase"}},
              "top_tensors": {
                "type": "array",
                "description": "alive at the peak, largest first",
                "items": {"$ref": "#/$defs/tensor"}
              }
            }
          }
        },
        "communication": {
          "type": "object",
          "description": "of one rank in an optimizer step in the steady state",
          "required": ["sent_bytes", "host_to_device_bytes", "device_to_host_bytes", "collectives"],
          "properties": {
            "sent_bytes": {"$ref": "#/$defs/bytes"},
            "host_to_device_bytes": {"$ref": "#/$defs/bytes"},
            "device_to_host_bytes": {"$ref": "#/$defs/bytes"},
            "collectives": {
              "type": "array",
              "description": "by kind and group, those that send most first",
              "items": {
                "type": "object",
                "required": ["kind", "axis", "ranks", "stride", "count", "payload_bytes", "sent_bytes"],
                "properties": {
                  "kind": {
                    "enum": [
                      "all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce", "gather",
                      "scatter", "all_to_all", "send", "recv"
                    ]
                  },
                  "axis": {
                    "enum": ["world", "dp_replicate", "dp_shard", "tp", "cp", "pp", "ep"],
                    "description": "of the device mesh"
                  },
                  "ranks": {"type": "integer", "minimum": 2, "description": "in the group"},
                  "stride": {"type": "integer", "minimum": 1, "description": "between its ranks"},
                  "count": {"type": "integer", "minimum": 1},
                  "payload_bytes": {
                    "$ref": "#/$defs/bytes",
                    "description": "of the whole: what an all_gather gives, a reduce_scatter takes, the one tensor of the others"
                  },
                  "sent_bytes": {
                    "$ref": "#/$defs/bytes",
                    "description": "as a ring sends them: (n - 1) / n of the payload, twice that in an all_reduce"
                  }
                }
              }
            }
          }
        },
        "step_time_lower_bound_seconds": {
          "type": "number",
          "minimum": 0,
          "description": "of an optimizer step: the longest term of each phase, summed over the phases"
        },
        "step_time": {
          "type": "object",
          "description": "the terms of the lower bound, each at the peak rate of the GPU and its links",
          "required": [
            "compute_seconds", "memory_seconds", "communication_seconds", "host_copies_seconds",
            "memory_traffic_bytes", "phases"
          ],
          "properties": {
            "compute_seconds": {"$ref": "#/$defs/seconds", "description": "of matrix products"},
            "memory_seconds": {
              "$ref": "#/$defs/seconds",
              "description": "to read weights in every pass, to write gradients and read and write what is updated"
            },
            "communication_seconds": {"$ref": "#/$defs/seconds"},
            "host_copies_seconds": {"$ref": "#/$defs/seconds", "description": "over PCIe"},
            "operations": {
              "type": "object",
              "description": "2 m n k of every matrix product, recomputation included, by the dtype of the operands",
              "additionalProperties": {"type": "number"}
            },
            "memory_traffic_bytes": {"$ref": "#/$defs/bytes", "description": "behind memory_seconds"},
            "phases": {
              "type": "array",
              "items": {
                "type": "object",
                "required": [
                  "phase", "times", "compute_seconds", "memory_seconds", "communication_seconds",
                  "host_copies_seconds"
                ],
                "properties": {
                  "phase": {"enum": ["forward", "backward", "optimizer_step", "zero_grad"]},
                  "times": {"type": "integer", "minimum": 1, "description": "in a step"},
                  "compute_seconds": {"$ref": "#/$defs/seconds"},
                  "memory_seconds": {"$ref": "#/$defs/seconds"},
                  "communication_seconds": {"$ref": "#/$defs/seconds"},
                  "host_copies_seconds": {"$ref": "#/$defs/seconds"}
                }
              }
            }
          }
        },
        "outside": {
          "type": "array",
          "description": "terms outside the framework's allocator",
          "items": {
            "type": "object",
            "required": ["name", "device_bytes", "source"],
            "properties": {
              "name": {"type": "string"},
              "device_bytes": {"$ref": "#/$defs/bytes"},
              "managed": {
                "type": "boolean",
                "description": "CUDA moves it to the host where the device is full: it takes what room there is"
              },
              "source": {"type": "string"}
            }
          }
        },
        "host": {
          "type": "object",
          "description": "memory of the machines that hold the GPUs",
          "required": [
            "per_node_bytes", "per_node_phase_name", "page_cache_bytes", "processes", "process_bytes", "rank0"
          ],
          "properties": {
            "per_node_bytes": {
              "$ref": "#/$defs/bytes",
              "description": "sum over the processes of a node in the phase in which it is largest"
            },
            "per_node_phase_name": {"type": "string"},
            "page_cache_bytes": {
              "$ref": "#/$defs/bytes",
              "description": "files that the processes of a node share and the system may drop: not in per_node_bytes"
            },
            "processes": {"type": "integer", "minimum": 1, "description": "of a node"},
            "process_bytes": {"$ref": "#/$defs/bytes", "description": "of each process beside its tensors"},
            "rank0": {"$ref": "#/$defs/host_rank", "description": "the first process of each node"},
            "others": {"$ref": "#/$defs/host_rank", "description": "absent where they hold the same"}
          }
        },
        "diagnostics": {"$ref": "#/$defs/diagnostics"}
      }
    },
    "diagnostics": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["severity", "code", "message"],
        "properties": {
          "severity": {"enum": ["note", "warning", "error"]},
          "code": {"type": "string"},
          "message": {"type": "string"},
          "key_path": {"type": "string"},
          "line": {"type": "integer", "minimum": 1},
          "column": {"type": "integer", "minimum": 1},
          "hint": {"type": "string"}
        }
      }
    }
  }
}
)json";
}

}  // namespace qlp
