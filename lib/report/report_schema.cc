#include "report/report_schema.h"

#include "report/schema_parts.h"

namespace qlp {

std::string report_schema() {
  std::string schema{R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$id": "urn:qlora-plan:report:1",
  "title": "qlora-plan report",
  "description": "What a fine-tuning job takes on every rank under every plan. Amounts are integer bytes. A field that does not apply is absent. Minor versions add fields only.",
  "type": "object",
  "required": ["schema_version", "tool", "diagnostics"],
  "oneOf": [{"required": ["job", "verdict", "plans"]}, {"required": ["job", "verdict", "search"]}, {"required": ["trace"]}],
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
)json"};
  schema += job_schema();
  schema +=
      R"json(    "verdict": {"enum": ["fits", "does_not_fit"], "description": "fits if any plan does; of a traced program absent where it gave no answer"},
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
    "trace": {"$ref": "#/$defs/trace", "description": "of `trace`, which has no job and no plans"},
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
)json";
  schema += verification_schema();
  schema += search_schema();
  schema += R"json(    "diagnostics": {"$ref": "#/$defs/diagnostics"}
  },
  "$defs": {
)json";
  schema += memory_schema();
  schema += plan_schema();
  schema += trace_schema();
  schema += R"json(    "numbers": {
      "type": "array",
      "items": {"oneOf": [{"type": "number"}, {"enum": ["nan", "-nan", "inf", "-inf"]}]}
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
  return schema;
}

}  // namespace qlp
