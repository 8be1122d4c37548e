#include "estimate/zero_rules.h"

#include <string>

#include <doctest/doctest.h>

#include "estimate/small_jobs.h"
#include "estimate/zero_plan.h"

using namespace qlp;

namespace {

/// The code of the only refusal, or none.
std::string refused(const JobSpec& job, const Zero& plan) {
  const auto refusals = check_zero(job, plan);
  CHECK(refusals.size() <= 1);
  return refusals.empty() ? "" : refusals.front().code;
}

const JobSpec kLora = small_lora_job(small_model(Family::llama));

}  // namespace

TEST_CASE("estimate/zero_rules: what DeepSpeed's file leaves out, the Trainer does not fill in") {
  const Zero plan{.gradient_clipping = Unsaid::left_out, .bf16 = {.enabled = Unsaid::left_out}};
  CHECK(refused(kLora, plan) == "");
  const auto options = zero_options(kLora, plan, 0, StackProfile(kLora.stack));
  CHECK_FALSE(options->clips());
  CHECK_FALSE(options->module_dtype);
  REQUIRE(zero_warnings(kLora, plan).size() == 1);
  CHECK(zero_warnings(kLora, plan).front().code == "zero-clips-nothing");
  JobSpec unclipped = kLora;
  unclipped.training.max_grad_norm = 0;
  CHECK(zero_warnings(unclipped, plan).empty());
}

TEST_CASE("estimate/zero_rules: values that differ from the Trainer's are refused in its words") {
  CHECK(refused(kLora, Zero{}) == "");
  CHECK(refused(kLora, Zero{.gradient_clipping = 1.0}) == "");
  CHECK(refused(kLora, Zero{.gradient_clipping = 0.5}) == "deepspeed-mismatch");
  CHECK(check_zero(kLora, Zero{.gradient_clipping = 0.5}).front().message ==
        "Please correct the following DeepSpeed config values that mismatch TrainingArguments values: - ds "
        "gradient_clipping=0.5 vs hf max_grad_norm=1");
  CHECK(refused(kLora, Zero{.bf16 = {.enabled = true}}) == "");
  CHECK(refused(kLora, Zero{.bf16 = {.enabled = false}}) == "deepspeed-mismatch");
  CHECK(refused(kLora, Zero{.fp16 = {.enabled = false}}) == "");
  CHECK(refused(kLora, Zero{.fp16 = {.enabled = true}}) == "deepspeed-mismatch");
}

TEST_CASE("estimate/zero_rules: master weights in bfloat16 come with such states of the optimizer") {
  CHECK(refused(kLora, Zero{.bf16 = {.bf16_master_weights_and_grads = true}}) == "zero-bf16-masters");
  CHECK(refused(kLora, Zero{.bf16 = {.bf16_optimizer_states = true}}) == "zero-bf16-masters");
  Zero plan{.bf16 = {.bf16_master_weights_and_grads = true, .bf16_optimizer_states = true}};
  CHECK(refused(kLora, plan) == "");
  CHECK(zero_options(kLora, plan, 0, StackProfile(kLora.stack))->master_dtype == DType::bfloat16);
  plan.offload_optimizer.device = OffloadDevice::cpu;
  CHECK(refused(kLora, plan) == "zero-bf16-masters");
}

TEST_CASE("estimate/zero_rules: autocast of DeepSpeed's own changes nothing in the dtype of the module") {
  Zero plan{.torch_autocast = {.enabled = true, .dtype = ZeroDType::bf16}};
  CHECK(refused(kLora, plan) == "");
  plan.torch_autocast.dtype.reset();
  CHECK(refused(kLora, plan) == "zero-torch-autocast");
  plan.torch_autocast.enabled = false;
  CHECK(refused(kLora, plan) == "");
  JobSpec plain = kLora;
  plain.training.bf16 = false;
  CHECK(refused(plain, Zero{.torch_autocast = {.enabled = true, .dtype = ZeroDType::bf16}}) == "zero-torch-autocast");
}

TEST_CASE("estimate/zero_rules: gradients are scaled beside reduce-scatter in stage 1 alone") {
  for (const int stage : {1, 2, 3}) {
    const std::string code = stage == 1 ? "" : "zero-scaled-gradients";
    CHECK(refused(kLora, Zero{.stage = stage, .prescale_gradients = true}) == code);
    CHECK(refused(kLora, Zero{.stage = stage, .gradient_predivide_factor = 2}) == code);
    CHECK(refused(kLora, Zero{.stage = stage, .reduce_scatter = false, .gradient_predivide_factor = 2}) == "");
    Zero by_nothing{.stage = stage, .reduce_scatter = false, .gradient_predivide_factor = 0};
    CHECK(refused(kLora, by_nothing) == "zero-predivide");
    CHECK(check_zero(kLora, by_nothing).front().key_path ==
          "plans.zero" + std::to_string(stage) + ".gradient_predivide_factor");
    by_nothing.prescale_gradients = true;  // by the number of ranks in its place
    CHECK(refused(kLora, by_nothing) == "");
  }
}

TEST_CASE("estimate/zero_rules: a bucket of nothing stops DeepSpeed") {
  CHECK(refused(kLora, Zero{.reduce_bucket_size = 0}) == "zero-empty-bucket");
}

TEST_CASE("estimate/zero_rules: gradients of bfloat16 that stage 1 adds up in float32 make another optimizer") {
  Zero plan{.stage = 1, .data_types = {ZeroDType::fp32}};
  CHECK(zero_takes_unfused_optimizer(kLora.training, plan));
  CHECK(refused(kLora, plan) == "");
  REQUIRE(zero_warnings(kLora, plan).size() == 1);
  CHECK(zero_warnings(kLora, plan).front().code == "zero1-shards-nothing");
  plan.optimizer.type = ZeroOptimizerType::adamw;
  CHECK(refused(kLora, plan) == "zero1-unfused-optimizer");
  plan.optimizer.params.torch_adam = true;
  CHECK(refused(kLora, plan) == "");
  plan.offload_optimizer.device = OffloadDevice::cpu;
  CHECK_FALSE(zero_takes_unfused_optimizer(kLora.training, plan));
  plan.stage = 2, plan.offload_optimizer = {};
  CHECK_FALSE(zero_takes_unfused_optimizer(kLora.training, plan));
}

TEST_CASE("estimate/zero_rules: the optimizer of DeepSpeed's file trains in the place of the Trainer's") {
  JobSpec job = kLora;
  job.training.optimizer = named_optimizer("adamw_bnb_8bit");
  Zero plan{.optimizer = {.type = ZeroOptimizerType::adamw}};
  const auto kind = [&] { return zero_optimizer_kind(job.training.optimizer.kind, plan); };
  CHECK(kind() == OptimizerKind(AdamW{AdamW::Loop::deepspeed}));
  const auto options = zero_options(job, plan, 0, StackProfile(job.stack));
  REQUIRE(options);
  CHECK(options->one_group);
  CHECK(options->has_kernel_flag);
  plan.optimizer.params.torch_adam = true;
  CHECK(kind() == OptimizerKind(AdamW{AdamW::Loop::foreach}));
  CHECK_FALSE(zero_has_kernel_flag(plan));
  plan.optimizer.params.torch_adam = false, plan.offload_optimizer.device = OffloadDevice::cpu;
  CHECK_FALSE(zero_has_kernel_flag(plan));
  job.training.optimizer = named_optimizer("adafactor");
  CHECK(refused(job, plan) == "zero-two-optimizers");
}

// DeepSpeed 0.18.3 on torch 2.8: zero2 and zero3 full fine-tunes, to the byte.
TEST_CASE("estimate/zero_rules: torch's optimizers, DeepSpeed's Lion and Adagrad by their names in DeepSpeed's file") {
  Zero plan{.optimizer = {.type = ZeroOptimizerType::sgd, .params = {.momentum = 0.9}}};
  const auto kind = [&] { return zero_optimizer_kind(kLora.training.optimizer.kind, plan); };
  CHECK(kind() == OptimizerKind(Sgd{0.9}));
  CHECK(refused(kLora, plan) == "");
  plan.zero_allow_untested_optimizer = false;
  CHECK(refused(kLora, plan) == "zero-untested-optimizer");
  plan.optimizer = {.type = ZeroOptimizerType::rmsprop};
  CHECK(kind() == OptimizerKind(RmsProp{}));
  CHECK(refused(kLora, plan) == "zero-untested-optimizer");
  plan.zero_allow_untested_optimizer = true;
  CHECK(refused(kLora, plan) == "");
  plan.optimizer.params.momentum = 0.9;
  CHECK(refused(kLora, plan) == "zero-momentum");
  plan.optimizer = {.type = ZeroOptimizerType::lion};
  plan.zero_allow_untested_optimizer = false;  // which DeepSpeed has tested
  CHECK(kind() == OptimizerKind(Lion{}));
  CHECK(refused(kLora, plan) == "");
  CHECK(zero_has_kernel_flag(plan));
  plan.optimizer = {.type = ZeroOptimizerType::adagrad};
  CHECK(kind() == OptimizerKind(Adagrad{}));
  CHECK(refused(kLora, plan) == "");
  CHECK(zero_makes_first_sums(plan));
  CHECK(zero_adagrad_start(plan) == AdagradStart::unmoved);
  plan.offload_optimizer.device = OffloadDevice::cpu;
  CHECK_FALSE(zero_makes_first_sums(plan));
  CHECK(zero_adagrad_start(plan) == AdagradStart::in_step);
}

TEST_CASE("estimate/zero_rules: weight decay of DeepSpeed's file is the Trainer's, or that of the optimizer itself") {
  JobSpec job = kLora;
  job.training.weight_decay = 0.1;
  Zero plan{.optimizer = {.type = ZeroOptimizerType::adamw}};
  const auto decay = [&] { return zero_weight_decay(job.training, plan); };
  CHECK(decay() == 0.1);
  plan.optimizer.params.weight_decay = Unsaid::left_out;
  CHECK(decay() == 0);
  plan.optimizer.params.torch_adam = true;
  CHECK(decay() == 0.01);
  plan.optimizer.params.weight_decay = 0.2;
  CHECK(refused(job, plan) == "deepspeed-mismatch");
  plan.optimizer.type = ZeroOptimizerType::none;
  CHECK(decay() == 0.1);
}

TEST_CASE("estimate/zero_rules: torch's Adam without decay of its own adds it to the gradients") {
  JobSpec job = kLora;
  Zero plan{.optimizer = {.type = ZeroOptimizerType::adam, .params = {.torch_adam = true, .adam_w_mode = false}}};
  CHECK(refused(job, plan) == "");
  job.training.weight_decay = 0.01;
  CHECK(refused(job, plan) == "zero-torch-adam-decay");
  plan.optimizer.type = ZeroOptimizerType::adamw;  // whatever adam_w_mode says
  CHECK(refused(job, plan) == "");
  plan.optimizer.type = ZeroOptimizerType::adam, plan.optimizer.params.torch_adam = false;
  CHECK(refused(job, plan) == "");
}

TEST_CASE("estimate/zero_rules: a warning where the engine casts 4-bit weights in floating storage") {
  for (const DType storage : {DType::uint8, DType::bfloat16})
    CHECK(zero_warnings(small_qlora_job(small_model(Family::llama), storage), Zero{}).empty());
  JobSpec job = small_qlora_job(small_model(Family::llama), DType::float32);
  CHECK(refused(job, Zero{}) == "");
  REQUIRE(zero_warnings(job, Zero{}).size() == 1);
  CHECK(zero_warnings(job, Zero{}).front().severity == Severity::warning);
  CHECK(zero_warnings(job, Fsdp2{}).empty());
  job.training.bf16 = false;  // then nothing is cast
  CHECK(zero_warnings(job, Zero{}).empty());
}

TEST_CASE("estimate/zero_rules: a warning where stage 1 keeps each rank's gradients to itself") {
  JobSpec job = small_job(small_model(Family::llama));
  job.cluster.world_size = 2, job.dtype = DType::bfloat16;
  const auto warns = [&](int stage) { return !zero_warnings(job, Zero{.stage = stage}).empty(); };
  CHECK_FALSE(warns(1));
  job.training.bf16 = false;
  CHECK(warns(1));
  CHECK_FALSE(warns(2));
  job.adapter = kLora.adapter;  // whose adapters are float32
  CHECK_FALSE(warns(1));
  job.adapter->autocast_adapter_dtype = false;
  CHECK(warns(1));
  job.cluster.world_size = 1;
  CHECK_FALSE(warns(1));
}

TEST_CASE("estimate/zero_rules: offload that stages 1 and 2 do not have is refused") {
  Zero plan;
  plan.offload_optimizer.device = OffloadDevice::cpu;
  CHECK(refused(kLora, plan) == "");
  plan.offload_optimizer.ratio = 0.5;
  CHECK(refused(kLora, plan) == "zero-partial-offload");
  plan.offload_optimizer = {.device = OffloadDevice::nvme};
  CHECK(refused(kLora, plan) == "zero-nvme");
  CHECK(refused(kLora, Zero{.allgather_bucket_size = 3}) == "zero-allgather-bucket");
}

TEST_CASE("estimate/zero_rules: torch's Adagrad, which DeepSpeed makes a second time, wants one group of parameters") {
  JobSpec job = kLora;
  job.training.optimizer = named_optimizer("adagrad");
  Zero plan;
  CHECK(refused(job, plan) == "");
  JobSpec full = job;
  full.adapter.reset();
  CHECK(refused(full, plan) == "zero-adagrad");
  plan.offload_optimizer.device = OffloadDevice::cpu;
  CHECK(refused(job, plan) == "zero-offloaded-by-name");  // DeepSpeedCPUAdagrad takes its place
  job.stack.accelerate = Version{1, 1, 1};
  CHECK(refused(job, plan) == "");
  plan.zero_force_ds_cpu_optimizer = false;
  CHECK(refused(job, plan) == "");
  CHECK(refused(full, plan) == "zero-adagrad");
}
