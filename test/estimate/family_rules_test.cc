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
  CHECK(code(Family::gemma3_text, {4, 49, 0}) == "family-not-in-stack");
  CHECK(code(Family::gemma3_text, {4, 51, 0}) == "family-in-old-stack");
  CHECK(code(Family::gemma3_text, {4, 53, 0}).empty());
  CHECK(code(Family::glm, {4, 47, 1}) == "family-in-old-stack");
  CHECK(code(Family::glm, {4, 48, 1}).empty());
  CHECK(code(Family::cohere, {4, 47, 1}) == "family-in-old-stack");
  CHECK(code(Family::granite, {4, 45, 2}).empty());
}

// "GemmaModel.forward() got an unexpected keyword argument 'num_items_in_batch'", seen in 4.48.1.
TEST_CASE("estimate/family_rules: Gemma's model takes what the Trainer hands it from 4.48.3 on") {
  JobSpec job = small_job(small_model(Family::gemma));
  const auto found = [&](Version transformers) {
    job.stack.transformers = transformers;
    return check_family(job, StackProfile(job.stack));
  };
  CHECK(found({4, 47, 1}).front().code == "family-in-old-stack");
  CHECK(found({4, 48, 1}).front().code == "gemma-item-counts");
  CHECK(found({4, 48, 3}).empty());
}

// Phi-3.5 under transformers 4.48.1 on a null GPU; 4.48.3 moves the frequencies (modeling_phi3.py).
TEST_CASE("estimate/family_rules: longrope whose frequencies stay on the host is refused for short batches") {
  JobSpec job = small_job(small_model(Family::phi3));
  job.model.rope = RopeKind::longrope;
  job.model.original_max_position_embeddings = 4096;
  const auto refused = [&](Version transformers, std::int64_t seq_len) {
    job.stack.transformers = transformers, job.training.seq_len = seq_len;
    const auto found = check_family(job, StackProfile(job.stack));
    return !found.empty() && found.front().code == "longrope-on-host";
  };
  CHECK(refused({4, 48, 0}, 4096));
  CHECK(refused({4, 48, 2}, 65));
  CHECK_FALSE(refused({4, 48, 1}, 4097));
  CHECK_FALSE(refused({4, 48, 3}, 65));
  CHECK_FALSE(refused({4, 47, 1}, 65));
  job.model.rope = RopeKind::standard;
  CHECK_FALSE(refused({4, 48, 1}, 65));
}
