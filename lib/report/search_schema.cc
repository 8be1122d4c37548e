#include "report/schema_parts.h"

namespace qlp {

std::string_view search_schema() {
  return R"json(    "search": {
      "type": "object",
      "description": "of `search`: how far one key of the job can go under each plan",
      "required": ["key", "wanted", "plans"],
      "properties": {
        "key": {"$ref": "#/$defs/search_key"},
        "wanted": {"enum": ["most", "fewest"]},
        "along": {
          "type": "object",
          "description": "present where each value of another key was searched",
          "required": ["key", "values"],
          "properties": {
            "key": {"$ref": "#/$defs/search_key"},
            "values": {"type": "array", "items": {"type": "integer", "minimum": 1}}
          }
        },
        "plans": {
          "type": "array",
          "description": "the best first; with `along` in the order of the job's plans, and of the values",
          "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
              "name": {"type": "string"},
              "along": {"type": "integer", "minimum": 1, "description": "value of the other key"},
              "value": {"type": "integer", "minimum": 1, "description": "with which it fits; absent if there is none"},
              "tokens_per_second_upper_bound": {
                "type": "number", "minimum": 0, "description": "of all GPUs, from the lower bound of the step's time"
              },
              "plan": {"$ref": "#/$defs/plan", "description": "with that value"},
              "beyond": {
                "type": "object",
                "description": "the neighbour that does not fit; absent where the values that are tried end",
                "required": ["value"],
                "properties": {
                  "value": {"type": "integer", "minimum": 1},
                  "lacks_bytes": {"$ref": "#/$defs/bytes", "description": "on the worst rank's GPU, if they are few"},
                  "reason": {"type": "string", "description": "why the plan cannot run with it"}
                }
              }
            }
          }
        }
      }
    },
)json";
}

}  // namespace qlp
