// Parts of the JSON Schema of the report, each a run of members with a comma at its end.
#pragma once

#include <string_view>

namespace qlp {

/// The property "job": the job with its defaults filled in.
std::string_view job_schema();

/// Definitions of what is held: figures, categories, peaks, phases, tensors, host memory.
std::string_view memory_schema();

/// The definition of a plan: its options, ranks, communication, step time, terms outside the allocator.
std::string_view plan_schema();

/// The property "verification": what a run of the real step measured.
std::string_view verification_schema();

/// The property "search": how far the job can go under each plan.
std::string_view search_schema();

/// The definition of a traced program: its ranks, what was answered, what the null GPU does not implement.
std::string_view trace_schema();

}  // namespace qlp
