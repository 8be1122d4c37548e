#include "report/schema_parts.h"

namespace qlp {

std::string_view verification_schema() {
  return R"json(    "verification": {
      "type": "object",
      "description": "of `verify`: a run of the real step, measured beside predicted",
      "required": ["verdict", "plan", "device", "world_size", "steps", "tolerance", "ranks"],
      "properties": {
        "verdict": {
          "enum": ["within_tolerance", "outside_tolerance", "out_of_memory", "failed", "interrupted"],
          "description": "exit status 0, 1, 1, 3, 130"
        },
        "plan": {"type": "string"},
        "device": {"enum": ["cpu", "cuda", "null"]},
        "world_size": {"type": "integer", "minimum": 1},
        "runner": {"const": "torch", "description": "the libraries' own step; absent: the program's"},
        "alone": {"const": true, "description": "one rank was played, with copies instead of the wire"},
        "steps": {"type": "integer", "minimum": 1},
        "tolerance": {
          "type": "object",
          "description": "how far a judged figure may be off: so many bytes, and such a share of the prediction",
          "required": ["bytes", "share"],
          "properties": {"bytes": {"$ref": "#/$defs/bytes"}, "share": {"type": "number", "minimum": 0}}
        },
        "versions": {"type": "array", "items": {"type": "string"}, "description": "of what it ran on"},
        "ranks": {
          "type": "array",
          "items": {
            "type": "object",
            "required": ["rank", "end", "state", "figures", "losses"],
            "properties": {
              "rank": {"type": "integer", "minimum": 0},
              "end": {
                "enum": [
                  "finished", "out_of_memory", "communicator_failed", "device_failed", "refused", "died",
                  "hung", "stopped"
                ]
              },
              "state": {"type": "string", "description": "the last that it told"},
              "message": {"type": "string", "description": "why it did not finish"},
              "output": {"type": "string", "description": "the last that it wrote, where it did not finish"},
              "device": {"type": "string"},
              "figures": {
                "type": "array",
                "items": {
                  "type": "object",
                  "required": ["name", "phase_name", "judged", "source"],
                  "properties": {
                    "name": {"type": "string", "description": "of the ledger, or of a term outside the allocator"},
                    "phase_name": {
                      "type": "string",
                      "description": "of the timeline; peak, training_peak or end for the run as a whole"
                    },
                    "measured_bytes": {"$ref": "#/$defs/bytes"},
                    "predicted_bytes": {"$ref": "#/$defs/bytes"},
                    "unaccounted_bytes": {"type": "integer", "description": "measured - predicted"},
                    "error": {"type": "number", "description": "the same as a share of the prediction"},
                    "judged": {"type": "boolean", "description": "the tolerance is held against it"},
                    "source": {"type": "string", "description": "how it was measured, or why it was not"}
                  }
                }
              },
              "peak": {
                "type": "object",
                "description": "what is alive at the allocated peak of a phase, where that was found too",
                "required": ["phase_name", "categories", "tensors"],
                "properties": {
                  "phase_name": {"type": "string"},
                  "categories": {
                    "type": "object",
                    "description": "allocated bytes",
                    "additionalProperties": {
                      "type": "object",
                      "required": ["measured_bytes", "predicted_bytes"],
                      "properties": {
                        "measured_bytes": {"$ref": "#/$defs/bytes"},
                        "predicted_bytes": {"$ref": "#/$defs/bytes"}
                      }
                    }
                  },
                  "tensors": {
                    "type": "array",
                    "description": "blocks of one allocated size of which one side has more, the heaviest first",
                    "items": {
                      "type": "object",
                      "required": ["size_bytes", "measured_count", "predicted_count"],
                      "properties": {
                        "size_bytes": {"$ref": "#/$defs/bytes"},
                        "measured_count": {"type": "integer", "minimum": 0},
                        "predicted_count": {"type": "integer", "minimum": 0},
                        "measured_as": {"type": "string"},
                        "predicted_as": {"type": "string"}
                      }
                    }
                  }
                }
              },
              "losses": {"$ref": "#/$defs/numbers", "description": "of its steps; none on the null GPU, which computes nothing"},
              "gradient_norms": {"$ref": "#/$defs/numbers", "description": "before clipping, of its optimizer steps"},
              "skipped_steps": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1},
                "description": "optimizer steps in which a gradient had overflowed in float16: nothing was updated, and no optimizer state was made"
              }
            }
          }
        }
      }
    },
)json";
}

}  // namespace qlp
