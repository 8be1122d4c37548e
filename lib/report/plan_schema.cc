#include "report/schema_parts.h"

namespace qlp {

std::string_view plan_schema() {
  return R"json(    "plan": {
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
        "outside": {"$ref": "#/$defs/outside"},
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
)json";
}

}  // namespace qlp
