// State on the host: what is worked out there, and on the way to and fro, comes to what one rank does.
#include <doctest/doctest.h>

#include "estimate/computed_runs.h"

namespace qlp {
namespace {

using test::check_equals_unsharded;

JobSpec float_job() {
  JobSpec job = small_job(small_model(Family::llama));
  job.dtype = DType::float32, job.training.bf16 = false;
  job.training.num_steps = 2, job.training.gradient_accumulation_steps = 2;
  job.training.optimizer = named_optimizer("sgd");
  job.cluster.world_size = 3;
  return job;
}

/// DeepSpeed takes the optimizer that it is given.
Zero zero(int stage, bool pins, bool offloads_parameters = false) {
  Zero plan{.stage = stage, .reduce_bucket_size = 5000, .stage3_param_persistence_threshold = 200};
  plan.zero_force_ds_cpu_optimizer = false;
  plan.offload_optimizer = {.device = OffloadDevice::cpu, .pin_memory = pins};
  if (offloads_parameters) plan.offload_param = {.device = OffloadDevice::cpu, .pin_memory = pins};
  return plan;
}

}  // namespace

TEST_CASE("estimate/computed_offload: FSDP1") {
  for (const bool original : {false, true}) {
    CAPTURE(original);
    check_equals_unsharded(float_job(), Fsdp1{.use_orig_params = original, .cpu_offload = true});
  }
}

TEST_CASE("estimate/computed_offload: bitsandbytes' state, which has no pages there") {
  JobSpec job = float_job();
  job.training.optimizer = named_optimizer("paged_adamw_32bit");
  // What is near 0 goes either way by the learning rate.
  check_equals_unsharded(job, Fsdp1{.cpu_offload = true}, {.weights = 1e-4});
}

TEST_CASE("estimate/computed_offload: FSDP2") { check_equals_unsharded(float_job(), Fsdp2{.cpu_offload = true}); }

TEST_CASE("estimate/computed_offload: ZeRO") {
  for (const bool pins : {false, true})
    for (const int stage : {1, 2, 3}) {
      CAPTURE(stage);
      check_equals_unsharded(float_job(), zero(stage, pins));
    }
  check_equals_unsharded(float_job(), zero(3, true, true));
}

}  // namespace qlp
