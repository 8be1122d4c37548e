#include "estimate/fsdp1_plan.h"

#include <string>

#include <doctest/doctest.h>

#include "estimate/dry_run.h"
#include "estimate/small_jobs.h"

namespace qlp {
namespace {

JobSpec lora_job() {
  JobSpec job;
  job.adapter.emplace();
  job.training.bf16 = true;
  job.cluster.world_size = 8;
  return job;
}

JobSpec qlora_job() {
  JobSpec job = lora_job();
  job.quantization.emplace();
  job.quantization->quant_storage = DType::bfloat16;
  return job;
}

std::string refused(const JobSpec& job, const Fsdp1& plan, const StackProfile& stack = StackProfile({})) {
  const auto options = fsdp1_options(job, plan, 0, stack);
  return options ? "" : options.error().front().code;
}

}  // namespace

TEST_CASE("estimate/fsdp1_plan: mixed precision is that of the Trainer's flag, or of the 4-bit storage") {
  JobSpec job = lora_job();
  auto options = fsdp1_options(job, {}, 3, StackProfile({}));
  REQUIRE(options);
  CHECK(options->mixed_precision.param_dtype == DType::bfloat16);
  CHECK(options->upcasts_trained);
  CHECK(options->wraps_trained_leaves);
  CHECK(options->rank == 3);
  job.training.bf16 = false;
  options = fsdp1_options(job, {}, 0, StackProfile({}));
  CHECK_FALSE(options->mixed_precision.param_dtype);
  CHECK_FALSE(options->upcasts_trained);
  job = qlora_job();
  job.training.bf16 = false, job.adapter->dtype = DType::bfloat16;
  options = fsdp1_options(job, {}, 0, StackProfile({}));
  REQUIRE(options);
  CHECK(options->mixed_precision.param_dtype == DType::bfloat16);
}

TEST_CASE("estimate/fsdp1_plan: hybrid strategies shard over the GPUs of a node") {
  JobSpec job = lora_job();
  job.cluster.world_size = 32;
  for (const auto strategy : {ShardingStrategy::hybrid_shard, ShardingStrategy::hybrid_shard_zero2}) {
    const auto options = fsdp1_options(job, {.sharding_strategy = strategy}, 21, StackProfile({}));
    REQUIRE(options);
    CHECK(options->shards);
    CHECK(options->hybrid);
    CHECK(options->world_size == 8);
    CHECK(options->rank == 5);
    CHECK(options->replicas == 4);
    CHECK(options->reshards_after_forward == (strategy == ShardingStrategy::hybrid_shard));
  }
  const Fsdp1 hybrid{.sharding_strategy = ShardingStrategy::hybrid_shard};
  job.cluster.world_size = 4;
  CHECK(fsdp1_options(job, hybrid, 0, StackProfile({}))->world_size == 4);
  job.cluster.world_size = 12;
  CHECK(refused(job, hybrid) == "fsdp1-hybrid-uneven-nodes");
  job.cluster.gpus_per_node = 1;
  CHECK(refused(job, hybrid) == "fsdp1-hybrid-one-gpu-nodes");
}

TEST_CASE("estimate/fsdp1_plan: a policy for mixed precision, unless the 4-bit storage decides") {
  JobSpec job = lora_job();
  const Fsdp1 plan{.mixed_precision_policy = {.param_dtype = DType::float16, .reduce_dtype = DType::float32}};
  CHECK(fsdp1_options(job, plan, 0, StackProfile({}))->mixed_precision == plan.mixed_precision_policy);
  CHECK(fsdp1_options(qlora_job(), plan, 0, StackProfile({}))->mixed_precision.param_dtype == DType::bfloat16);
}

// Seen with torch 2.8.0 and 2.14.1.
TEST_CASE("estimate/fsdp1_plan: what is trained beside the embedding is in one unit with it") {
  JobSpec job = lora_job();
  for (const AdapterSpec& adapter : {AdapterSpec{.target_modules = {"q_proj", "embed_tokens"}},
                                     AdapterSpec{.target_modules = {"q_proj"}, .trainable_token_indices = {1}}}) {
    job.adapter = adapter;
    CHECK(refused(job, {}) == "fsdp1-mixed-dtypes");
    job.adapter->dtype = DType::bfloat16;
    CHECK(refused(job, {}).empty());
    CHECK(refused(job, {.use_orig_params = false}) == "fsdp1-mixed-unit");
  }
}

TEST_CASE("estimate/fsdp1_plan: what cannot run is refused with its reason") {
  JobSpec job = qlora_job();
  CHECK(refused(job, {}).empty());
  SUBCASE("weights stored as integers") {
    job.quantization->quant_storage = DType::uint8;
    CHECK(refused(job, {}) == "fsdp1-integer-storage");
  }
  SUBCASE("two dtypes in one layer") {
    job.quantization->prepare_kbit = true;
    CHECK(refused(job, {}) == "fsdp1-mixed-dtypes");
  }
  SUBCASE("an adapter whose input is cast to float32 and whose weight is gathered in 16 bit") {
    job.training.bf16 = false;
    CHECK(refused(job, {}) == "fsdp1-adapter-dtype");
    job.adapter->dtype = DType::bfloat16;
    CHECK(refused(job, {}).empty());
  }
  SUBCASE("DoRA, but for flat parameters in one dtype") {
    job = lora_job();
    job.adapter->use_dora = true;
    CHECK(refused(job, {.use_orig_params = true}) == "fsdp1-dora");
    CHECK(refused(job, {.use_orig_params = false}) == "fsdp1-dora");
    job.training.bf16 = false;
    CHECK(refused(job, {.use_orig_params = false}).empty());
    CHECK(refused(job, {.sharding_strategy = ShardingStrategy::no_shard, .use_orig_params = true}).empty());
    job = qlora_job();
    job.adapter->use_dora = true;
    job.adapter->dtype = DType::bfloat16;
    CHECK(refused(job, {.use_orig_params = false}) == "fsdp1-dora");
    job.training.bf16 = false;
    CHECK(refused(job, {.use_orig_params = false}).empty());
  }
  SUBCASE("gradients of two dtypes that are clipped") {
    job = lora_job();
    job.adapter->modules_to_save = {"lm_head"};
    CHECK(refused(job, {}).empty());
    job.training.bf16 = false;
    const StackProfile old({.torch = Version{2, 8, 0}});
    CHECK(refused(job, {}, old) == "fsdp1-gradient-dtypes");
    CHECK(refused(job, {}).empty());
    job.training.max_grad_norm = 0;
    CHECK(refused(job, {}, old).empty());
  }
  SUBCASE("NO_SHARD with original parameters that are frozen or upcast, up to torch 2.8") {
    const StackProfile old({.torch = Version{2, 8, 0}});
    const Fsdp1 plan{.sharding_strategy = ShardingStrategy::no_shard, .use_orig_params = true};
    CHECK(refused(job, plan, old) == "fsdp1-no-shard-writeback");
    CHECK(refused(job, {.sharding_strategy = ShardingStrategy::no_shard, .use_orig_params = false}, old).empty());
    JobSpec full;
    full.training.bf16 = true;
    CHECK(refused(full, plan, old) == "fsdp1-no-shard-writeback");
    CHECK(refused(full, plan).empty());
    full.training.bf16 = false;
    CHECK(refused(full, plan, old).empty());
    // Llama 3.1 8B and 3.2 1B under torch 2.4.1 and 2.8.0: what is float32 is read from 16-bit copies.
    JobSpec wide = lora_job();
    wide.dtype = DType::float32;
    CHECK(refused(wide, plan, old).empty());
    wide.adapter->dtype = DType::bfloat16;
    CHECK(refused(wide, plan, old) == "fsdp1-no-shard-writeback");
    wide.adapter->dtype.reset(), wide.training.bf16 = false;
    CHECK(refused(wide, plan, old) == "fsdp1-no-shard-writeback");
  }
  SUBCASE("the same on one rank, where FSDP does not shard") {
    job.cluster.world_size = 1;
    CHECK(refused(job, {}, StackProfile({.torch = Version{2, 8, 0}})) == "fsdp1-no-shard-writeback");
    const auto options = fsdp1_options(job, {.use_orig_params = false}, 0, StackProfile({}));
    REQUIRE(options);
    CHECK_FALSE(options->shards);
  }
  SUBCASE("4-bit weights that stay whole until the backward pass") {
    for (const auto strategy : {ShardingStrategy::shard_grad_op, ShardingStrategy::hybrid_shard_zero2}) {
      CHECK(refused(job, {.sharding_strategy = strategy}) == "fsdp1-4bit-kept-whole");
      CHECK(refused(job, {.sharding_strategy = strategy, .use_orig_params = false}).empty());
      CHECK(refused(lora_job(), {.sharding_strategy = strategy}).empty());
    }
    // Llama 3.2 1B, 2 ranks, under torch 2.4.1 and transformers 4.48.1
    job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
    const StackProfile old({.torch = Version{2, 4, 1}, .transformers = Version{4, 48, 1}});
    CHECK(refused(job, {.sharding_strategy = ShardingStrategy::shard_grad_op}, old) == "fsdp1-4bit-kept-whole");
  }
  SUBCASE("gradients on the host that are reduced after every micro step") {
    job.training.gradient_accumulation_steps = 2;
    CHECK(refused(job, {.cpu_offload = true}).empty());
    job.training.sync_each_batch = true;
    CHECK(refused(job, {}).empty());
    CHECK(refused(job, {.cpu_offload = true}) == "fsdp1-offload-accumulation");
    CHECK(refused(job, {.cpu_offload = true}, StackProfile({.transformers = Version{4, 57, 1}})).empty());
    job.training.gradient_accumulation_steps = 1;
    CHECK(refused(job, {.cpu_offload = true}).empty());
  }
  SUBCASE("frozen and trained parameters in one unit") {
    job = lora_job();
    for (const auto policy : {WrapPolicy::transformer_based_wrap, WrapPolicy::no_wrap}) {
      job.adapter->dtype.reset();
      CHECK(refused(job, {.use_orig_params = false, .auto_wrap_policy = policy}) == "fsdp1-mixed-unit");
      CHECK(refused(job, {.auto_wrap_policy = policy}) == "fsdp1-mixed-dtypes");
      job.adapter->dtype = DType::bfloat16;
      CHECK(refused(job, {.auto_wrap_policy = policy}).empty());
    }
  }
  SUBCASE("NO_SHARD with frozen embeddings that are shared, in newer torch") {
    const Fsdp1 plan{.sharding_strategy = ShardingStrategy::no_shard, .use_orig_params = true};
    CHECK(refused(job, plan).empty());
    job.model.tie_word_embeddings = true;
    CHECK(refused(job, plan) == "fsdp1-no-shard-tied");
    Fsdp1 offloaded = plan;
    offloaded.cpu_offload = true;
    CHECK(refused(job, offloaded).empty());
    CHECK(refused(job, {.sharding_strategy = ShardingStrategy::no_shard, .use_orig_params = false}).empty());
    job.adapter.reset();
    job.quantization.reset();
    CHECK(refused(job, plan).empty());
  }
}

// "setStorage: ... are out of bounds for storage of size 0", seen in torch 2.14.
TEST_CASE("estimate/fsdp1_plan: layers of one unit and a backward pass for each do not go together") {
  JobSpec job = small_job(small_model(Family::llama));
  job.cluster.world_size = 4;
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  const auto code = [&](const Fsdp1& plan) {
    const auto run = dry_run(job, plan, 0);
    return run ? "" : run.error().front().code;
  };
  const Fsdp1 unwrapped{.auto_wrap_policy = WrapPolicy::no_wrap};
  CHECK(code({}) == "");
  CHECK(code(unwrapped) == "fsdp1-reentrant-unit");
  Fsdp1 by_size{.use_orig_params = false, .auto_wrap_policy = WrapPolicy::size_based_wrap, .min_num_params = 1000};
  CHECK(code(by_size) == "");  // norms alone are left to the root
  by_size.use_orig_params = true;
  CHECK(code(by_size) == "fsdp1-reentrant-unit");
  job.adapter = AdapterSpec{.target_modules = {"q_proj"}, .layers_to_transform = {0}};
  job.adapter->dtype = job.dtype;
  CHECK(code(unwrapped) == "");  // nothing runs again after the first layer's gradients
  job.adapter->layers_to_transform = {1};
  CHECK(code(unwrapped) == "fsdp1-reentrant-unit");
  job.adapter.reset();
  job.model.num_hidden_layers = 1;
  CHECK(code(unwrapped) == "");
  job.model.num_hidden_layers = 2;
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  CHECK(code(unwrapped) == "");
}

}  // namespace qlp
