#include "estimate/zero_plan.h"

#include <doctest/doctest.h>

#include "estimate/small_jobs.h"

using namespace qlp;

namespace {

const JobSpec kLora = small_lora_job(small_model(Family::llama));

}  // namespace

TEST_CASE("estimate/zero_plan: auto follows the job as transformers fills it in") {
  Zero plan;
  plan.reduce_bucket_size.reset();
  const auto options = zero_options(kLora, plan, 0, StackProfile(kLora.stack));
  REQUIRE(options);
  CHECK(options->reduce_bucket_size == kLora.model.hidden_size * kLora.model.hidden_size);
  CHECK(options->module_dtype == DType::bfloat16);
  CHECK(options->clips());
  CHECK_FALSE(options->checks_overflow);
  JobSpec plain = kLora;
  plain.training.bf16 = false;
  plain.training.max_grad_norm = 0;
  const auto uncast = zero_options(plain, plan, 0, StackProfile(plain.stack));
  REQUIRE(uncast);
  CHECK_FALSE(uncast->module_dtype);
  CHECK(uncast->reduced_dtype() == DType::float32);
  CHECK_FALSE(uncast->clips());
}

TEST_CASE("estimate/zero_plan: fp16 scales the loss, so it looks for overflow") {
  JobSpec job = kLora;
  job.training.bf16 = false, job.training.fp16 = true;
  const auto options = zero_options(job, Zero{}, 0, StackProfile(job.stack));
  REQUIRE(options);
  CHECK(options->module_dtype == DType::float16);
  CHECK(options->checks_overflow);
  CHECK(options->loss_scale.value() == 65536);
  const Zero given{.fp16 = {.loss_scale = 128}};
  CHECK(zero_options(job, given, 0, StackProfile(job.stack))->loss_scale.value() == 128);
  CHECK(zero_options(kLora, given, 0, StackProfile(kLora.stack))->loss_scale.value() == 1);
}
