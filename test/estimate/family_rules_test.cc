#include "estimate/family_rules.h"

#include <doctest/doctest.h>

#include "small_jobs.h"

using namespace qlp;

// "model type `qwen3` but Transformers does not recognize this architecture", seen in 4.48.1.
TEST_CASE("estimate/family_rules: a stack older than the model is refused") {
  const auto code = [](Family family, Version transformers) {
    JobSpec job = small_job(small_model(family));
    job.stack.transformers = transformers;
    const auto found = check_family(job, StackProfile(job.stack));
    return found.empty() ? "" : found.front().code;
  };
  CHECK(code(Family::qwen3, {4, 48, 1}) == "family-not-in-stack");
  CHECK(code(Family::qwen3, {4, 51, 0}).empty());
  CHECK(code(Family::olmo2, {4, 46, 3}) == "family-not-in-stack");
  CHECK(code(Family::olmo2, {4, 48, 1}).empty());
  CHECK(code(Family::mixtral, {4, 39, 3}).empty());
}
