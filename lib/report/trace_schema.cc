#include "report/schema_parts.h"

namespace qlp {

std::string_view trace_schema() {
  return R"json(    "trace": {
      "type": "object",
      "description": "what a program of the user's own took of GPUs that are not there",
      "required": [
        "command", "outcome", "gpu", "margin", "world_size", "versions", "ranks", "outside", "answers", "unimplemented",
        "assumptions"
      ],
      "properties": {
        "command": {"type": "array", "items": {"type": "string"}},
        "outcome": {"enum": ["ran", "out_of_memory", "failed", "hung"]},
        "message": {"type": "string", "description": "of a failure, in the program's words"},
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
        "margin": {"type": "number", "minimum": 0, "maximum": 1, "description": "share of capacity that is kept free"},
        "world_size": {"type": "integer", "minimum": 1},
        "played_rank": {"type": "integer", "minimum": 0, "description": "present where one rank was played alone"},
        "versions": {"type": "object", "additionalProperties": {"type": "string"}},
        "ranks": {
          "type": "array",
          "description": "a process on a device each, the worst first",
          "items": {
            "type": "object",
            "required": ["rank", "device", "retries", "peak", "persistent", "phases"],
            "properties": {
              "rank": {"type": "integer", "minimum": 0},
              "device": {"type": "integer", "minimum": 0},
              "retries": {"type": "integer", "minimum": 0, "description": "times the allocator gave its cache back"},
              "peak": {"$ref": "#/$defs/traced_peak", "description": "over the whole run, load included"},
              "training_peak": {"$ref": "#/$defs/traced_peak", "description": "from the first forward on"},
              "persistent": {"$ref": "#/$defs/figures", "description": "held after the last step"},
              "phases": {
                "type": "array",
                "items": {
                  "type": "object",
                  "required": ["name", "phase", "peak", "held"],
                  "properties": {
                    "name": {"type": "string"},
                    "phase": {"$ref": "#/$defs/phase_kind"},
                    "peak": {"$ref": "#/$defs/figures"},
                    "held": {"$ref": "#/$defs/figures", "description": "at its end"}
                  }
                }
              },
              "top_tensors": {
                "type": "array",
                "description": "alive at the peak, largest first; with --inventory",
                "items": {"$ref": "#/$defs/tensor"}
              }
            }
          }
        },
        "outside": {"$ref": "#/$defs/outside"},
        "answers": {
          "type": "array",
          "description": "reads of what a kernel would have written, answered by rule",
          "items": {
            "type": "object",
            "required": ["kind", "operation", "place", "value", "count"],
            "properties": {
              "kind": {"enum": ["bool", "float", "int", "compare", "equal", "nonzero"]},
              "operation": {"type": "string"},
              "place": {"type": "string", "description": "the program's line"},
              "value": {"description": "the first answer: a boolean, a number, or text"},
              "count": {"type": "integer", "minimum": 1}
            }
          }
        },
        "unimplemented": {
          "type": "array",
          "description": "entry points of CUDA's libraries that the null GPU does not have, and their calls",
          "items": {
            "type": "object",
            "required": ["name", "calls"],
            "properties": {"name": {"type": "string"}, "calls": {"type": "integer", "minimum": 1}}
          }
        },
        "assumptions": {
          "type": "array",
          "description": "where the null GPU's answer is plausible rather than known",
          "items": {"type": "string"}
        }
      }
    },
    "traced_peak": {
      "type": "object",
      "required": [
        "phase", "phase_name", "requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes",
        "device_used_bytes", "capacity_bytes", "headroom_bytes"
      ],
      "properties": {
        "phase": {"type": "string", "description": "of the allocated peak"},
        "phase_name": {"type": "string", "description": "its name in phases"},
        "requested_bytes": {"$ref": "#/$defs/bytes"},
        "allocated_bytes": {"$ref": "#/$defs/bytes"},
        "active_bytes": {"$ref": "#/$defs/bytes"},
        "reserved_bytes": {"$ref": "#/$defs/bytes"},
        "device_used_bytes": {"$ref": "#/$defs/bytes"},
        "capacity_bytes": {"$ref": "#/$defs/bytes"},
        "headroom_bytes": {"type": "integer", "description": "capacity - margin - device used"},
        "categories": {"$ref": "#/$defs/categories", "description": "at the peak; with --inventory"}
      }
    },
)json";
}

}  // namespace qlp
