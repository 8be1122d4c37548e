#include "report/schema_parts.h"

namespace qlp {

std::string_view memory_schema() {
  return R"json(    "bytes": {"type": "integer", "minimum": 0},
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
        "reserved_when_limited_bytes": {
          "$ref": "#/$defs/bytes",
          "description": "of segments where it runs only because PyTorch frees its cache; the others are without a limit"
        },
        "device_used_bytes": {"$ref": "#/$defs/bytes", "description": "reserved_when_limited_bytes where given, else reserved.max, with the terms outside that find room and what others use"},
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
          "measured": {"type": "boolean", "description": "on the machine in question, by verify --calibrate"},
          "source": {"type": "string"}
        }
      }
    },
    "search_key": {"enum": ["micro_batch_size", "seq_len", "r", "world_size"]},
    "phase_kind": {
      "enum": [
        "load", "adapter", "prepare", "forward", "backward", "optimizer_step", "zero_grad",
        "evaluation", "save", "end"
      ]
    },
    "phase": {
      "type": "object",
      "required": ["name", "phase", "peak", "held", "host"],
      "properties": {
        "name": {"type": "string"},
        "phase": {"$ref": "#/$defs/phase_kind"},
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
)json";
}

}  // namespace qlp
