#include "estimate/zero3_plan.h"

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "estimate/dry_run.h"
#include "estimate/rank_report.h"
#include "estimate/small_jobs.h"
#include "plan/catalogue.h"

namespace qlp {
namespace {

/// Llama-3.2-1B cut to three layers, on rank 0 of 4, weights from the host, stack 2025-10 (deepspeed 0.18.3).
JobSpec three_layers() {
  JobSpec job;
  ModelSpec& model = job.model;
  model.hidden_size = 2048, model.intermediate_size = 8192, model.num_hidden_layers = 3, model.vocab_size = 128'256;
  model.num_attention_heads = 32, model.num_key_value_heads = 8, model.head_dim = 64;
  model.max_position_embeddings = 131'072, model.tie_word_embeddings = true;
  job.loading = Loading::cpu;
  job.training.seq_len = 128;
  job.training.bf16 = true;
  job.cluster.world_size = 4;
  job.cluster.gpu.capacity = Bytes{std::uint64_t{80} << 30};
  job.stack = kOlder;
  return job;
}

/// Two layers of 1024 x 4096 with 16384 words, weights from the GPU.
JobSpec small_tables() {
  JobSpec job = three_layers();
  ModelSpec& model = job.model;
  model.hidden_size = 1024, model.intermediate_size = 4096, model.num_hidden_layers = 2, model.vocab_size = 16384;
  model.num_attention_heads = 16;
  job.loading = Loading::gpu;
  return job;
}

JobSpec lora_job() {
  JobSpec job = three_layers();
  job.adapter.emplace();
  job.adapter->r = 8;
  job.adapter->target_modules = {"q_proj", "v_proj"};
  return job;
}

Zero zero3() {
  Zero plan = std::get<Zero>(find_plan("zero3")->plan);
  plan.reduce_bucket_size = 20'000'000;
  return plan;
}

std::vector<std::string> refused(const JobSpec& job, const Zero& plan) {
  std::vector<std::string> codes;
  const auto options = zero3_options(job, plan, 0, StackProfile(job.stack));
  if (!options)
    for (const Diagnostic& diagnostic : options.error()) codes.push_back(diagnostic.code);
  return codes;
}

/// Requested bytes at the peak of training, and at the end of the run.
struct Figures {
  std::uint64_t peak = 0, end = 0;
  friend bool operator==(const Figures&, const Figures&) = default;
};

Figures run(const JobSpec& job, const Zero& plan) {
  const auto run = dry_run(job, plan, 0);
  REQUIRE(run);
  return {rank_report(*run, 0, false).training_peak.figures.requested.count(), run->end.requested.current};
}

}  // namespace

TEST_CASE("estimate/zero3_plan: what the oracle records, to the byte") {
  CHECK(run(lora_job(), zero3()) == Figures{1'747'301'025, 280'593'993});
  JobSpec full = three_layers();
  full.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  full.training.gradient_accumulation_steps = 2;
  CHECK(run(full, zero3()) == Figures{3'938'987'621, 1'837'607'497});
}

TEST_CASE("estimate/zero3_plan: float16, and optimizers on flat parts, as the oracle records them") {
  JobSpec job = three_layers();
  job.model.num_hidden_layers = 2;
  job.training.seq_len = 256;
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  job.adapter.emplace();
  job.adapter->r = 8, job.adapter->all_linear = true, job.adapter->target_modules = {};
  Zero plan = std::get<Zero>(find_plan("zero3")->plan);
  plan.zero_force_ds_cpu_optimizer = false;
  const auto with = [&](const char* optimizer) {
    job.training.optimizer = named_optimizer(optimizer);
    return run(job, plan);
  };
  CHECK(with("adafactor") == Figures{2'379'610'729, 1'212'739'149});
  CHECK(with("adamw_bnb_8bit") == Figures{2'379'266'021, 1'212'394'441});
  CHECK(with("lion_32bit") == Figures{2'379'610'725, 1'212'739'145});
  job.training.bf16 = false, job.training.fp16 = true;
  CHECK(with("adamw_torch") == Figures{2'380'315'237, 1'213'443'657});
}

// DoRA's layers read the weight of the base: it is gathered then, and fetched ahead for them from the next step on.
TEST_CASE("estimate/zero3_plan: DoRA, as the oracle records it") {
  JobSpec job = small_tables();
  job.training.seq_len = 256;
  job.adapter.emplace();
  job.adapter->r = 16, job.adapter->all_linear = true, job.adapter->use_dora = true;
  Zero plan = std::get<Zero>(find_plan("zero3")->plan);
  plan.reduce_bucket_size = 2'000'000, plan.stage3_prefetch_bucket_size = 1'000'000;
  CHECK(run(job, plan) == Figures{256'694'153, 49'642'313});
  job.quantization = QuantizationSpec{.double_quant = true, .quant_storage = DType::bfloat16};
  job.training.gradient_accumulation_steps = 2;
  CHECK(run(job, plan) == Figures{206'615'873, 38'361'345});
  CHECK(refused(job, plan).empty());
  job.quantization.reset(), job.loading = Loading::automatic;  // zero.Init
  CHECK(refused(job, plan) == std::vector<std::string>{"zero3-dora-init"});
}

// The second copy of what is trained goes with each step, that of the base stays.
TEST_CASE("estimate/zero3_plan: a second copy within each node (hpZ), as the oracle records it") {
  JobSpec job = small_tables();
  job.training.seq_len = 512;
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  job.adapter.emplace();
  job.adapter->r = 16, job.adapter->all_linear = true;
  Zero plan = std::get<Zero>(find_plan("zero3")->plan);
  plan.reduce_bucket_size = 2'000'000, plan.zero_hpz_partition_size = 2;
  CHECK(run(job, plan) == Figures{311'787'353, 97'734'473});
  job.adapter.reset();
  CHECK(run(job, plan).peak == 423'866'713);
  plan.zero_hpz_partition_size = 3;
  CHECK(refused(job, plan) == std::vector<std::string>{"zero3-hpz"});
}

TEST_CASE(
    "estimate/zero3_plan: dtypes of gradients, and sums in the place of what is gathered, as the oracle records") {
  JobSpec job = three_layers();
  job.cluster.world_size = 3;
  job.training.seq_len = 256;
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  job.training.gradient_accumulation_steps = 2;
  Zero plan = zero3();
  SUBCASE("buckets that are summed, also in another dtype") {
    plan.reduce_scatter = false;
    CHECK(run(job, plan) == Figures{4'532'534'819, 2'431'120'903});
    plan.communication_data_type = ZeroDType::fp32;
    CHECK(run(job, plan) == Figures{4'747'647'007, 2'471'120'903});
    plan.contiguous_gradients = false;
    CHECK(run(job, plan) == Figures{4'667'647'007, 2'391'120'903});
  }
  SUBCASE("a table's gradient, larger than the bucket, is divided into a copy, unless it is scaled before") {
    plan.reduce_scatter = false;
    plan.communication_data_type = ZeroDType::fp32;
    const auto undivided = run(job, plan).peak;
    plan.gradient_predivide_factor = 2;
    CHECK(run(job, plan).peak > undivided);
    plan.prescale_gradients = true;
    CHECK(run(job, plan).peak == undivided);
  }
  SUBCASE("gradients that are added up in float32") {
    plan.data_types.grad_accum_dtype = ZeroDType::fp32;
    CHECK(run(job, plan) == Figures{4'829'291'417, 2'727'877'501});
  }
  SUBCASE("parameters that are fetched as a sum") {
    plan.stage3_use_all_reduce_for_fetch_params = true;
    CHECK(run(job, plan) == Figures{4'532'534'819, 2'431'120'903});
  }
  SUBCASE("stage 2 with master weights in bfloat16") {
    plan = std::get<Zero>(find_plan("zero2")->plan);
    plan.bf16.bf16_master_weights_and_grads = plan.bf16.bf16_optimizer_states = true;
    CHECK(run(job, plan) == Figures{4'899'005'040, 1'797'578'836});
  }
}

TEST_CASE("estimate/zero3_plan: sizes that are left to the Trainer follow the width of the model") {
  JobSpec job = lora_job();
  Zero plan;
  plan.stage = 3;
  plan.reduce_bucket_size.reset(), plan.stage3_prefetch_bucket_size.reset();
  plan.stage3_param_persistence_threshold.reset();
  const auto options = zero3_options(job, plan, 2, StackProfile(job.stack));
  REQUIRE(options);
  CHECK(options->reduce_bucket_size == 2048 * 2048);
  CHECK(options->prefetch_bucket_size == 3'774'873);  // int(0.9 * hidden_size * hidden_size)
  CHECK(options->param_persistence_threshold == 20'480);
  CHECK(options->rank == 2);
  CHECK(options->module_dtype == DType::bfloat16);
  CHECK(options->outer_modules == 2);
}

TEST_CASE("estimate/zero3_plan: zero.Init makes the model in parts, as the oracle records it") {
  JobSpec job = three_layers();
  job.model.num_hidden_layers = 2;
  job.loading = Loading::rank0;
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  CHECK(run(job, zero3()) == Figures{3'170'882'277, 1'594'313'417});
  const auto whole_run = dry_run(job, zero3(), 0);
  const Phase& load = whole_run->timeline.phases().front();
  CHECK(load.name == "load");
  CHECK(load.requested.bytes == 1'374'164'096);  // the table of embeddings twice while it is gathered
  CHECK(load.end.requested.current == 323'490'944);
}

// The libraries on a null GPU as above, with an attention mask of 4096 bytes, which no prediction has; tokens were sent
// to all experts evenly. Two layers of Mixtral with 8 experts, LoRA, rank 0 of 2.
TEST_CASE("estimate/zero3_plan: a mixture is gathered as a whole, as DeepSpeed does by itself") {
  JobSpec job = lora_job();
  ModelSpec& model = job.model;
  model.family = Family::mixtral;
  model.hidden_size = 1024, model.intermediate_size = 1536, model.num_hidden_layers = 2, model.vocab_size = 32'000;
  model.num_attention_heads = 16, model.num_key_value_heads = 4, model.tie_word_embeddings = false;
  model.max_position_embeddings = 32'768;
  model.experts = ExpertSpec{.num_experts = 8, .num_experts_per_tok = 2, .intermediate_size = 1536};
  job.loading = Loading::rank0;
  job.training.seq_len = 512;
  job.training.num_steps = 2;
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  job.cluster.world_size = 2;
  const Figures figures = run(job, std::get<Zero>(find_plan("zero3")->plan));
  CHECK(figures.peak == 1'664'755'417 - 4096);
  CHECK(figures.end == 1'163'912'905);
}

TEST_CASE("estimate/zero3_plan: what cannot run, or is not worked out, is refused with its reason") {
  JobSpec job = lora_job();
  Zero plan = zero3();
  using Codes = std::vector<std::string>;
  CHECK(refused(job, plan).empty());
  SUBCASE("checkpointing without reentrance") {
    job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
    CHECK(refused(job, plan) == Codes{"zero3-nonreentrant-checkpointing"});
  }
  SUBCASE("mixtures of experts") {
    job.model.family = Family::mixtral;
    job.model.experts.emplace();
    CHECK(refused(job, plan).empty());
    job.adapter->target_modules = {"w1"};
    CHECK(refused(job, plan).empty() == (job.training.gradient_checkpointing != GradientCheckpointing::none));
    job.stack.deepspeed = {0, 17, 6};
    job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
    CHECK(refused(job, plan) == Codes{"zero3-leaves"});
    job.stack.transformers = {5, 24, 0};
    CHECK(refused(job, plan) == Codes{"zero3-stacked-experts"});
    job.stack.transformers = {4, 57, 1};
    job.model.family = Family::olmoe;  // which DeepSpeed knows nothing of in any version
    CHECK(refused(job, plan).empty());
    job.model.family = Family::gpt_oss, job.training.attention = Attention::eager;
    CHECK(refused(job, plan) == Codes{"zero3-stacked-experts"});
  }
  SUBCASE("other optimizers") {
    job.training.optimizer = named_optimizer("lomo");
    CHECK(refused(job, plan) == Codes{"zero3-optimizer"});
    for (const char* optimizer : {"adafactor", "rmsprop", "paged_adamw_8bit", "schedule_free_adamw", "stable_adamw"}) {
      job.training.optimizer = named_optimizer(optimizer);
      CHECK(refused(job, plan).empty());
      plan.offload_optimizer.device = OffloadDevice::cpu;
      CHECK(refused(job, plan).empty());
    }
  }
  SUBCASE("small parameters of two dtypes, which are gathered together") {
    job.training.bf16 = false;
    CHECK(refused(job, plan) == Codes{"zero3-persistent-dtypes"});
    plan.stage3_param_persistence_threshold = 0;
    CHECK(refused(job, plan).empty());
    plan.stage3_param_persistence_threshold.reset();
    job.adapter->autocast_adapter_dtype = false;
    CHECK(refused(job, plan).empty());
    job.adapter->autocast_adapter_dtype = true, job.dtype = DType::float32;
    CHECK(refused(job, plan).empty());
  }
  SUBCASE("small parameters of two dtypes, of which only the first few stay whole") {
    job.training.bf16 = false;
    plan.stage3_model_persistence_threshold = 0;
    CHECK(refused(job, plan).empty());
  }
  SUBCASE(
      "parameters of two dtypes that are fetched by all-reduce, which the engine's cast leaves where they are 4-bit") {
    plan.stage3_use_all_reduce_for_fetch_params = true;
    plan.stage3_param_persistence_threshold = 0;
    CHECK(refused(job, plan).empty());
    job.quantization = QuantizationSpec{};
    CHECK(refused(job, plan) == Codes{"zero3-fetched-dtypes"});
    job.quantization->quant_storage = DType::bfloat16;
    CHECK(refused(job, plan).empty());
    job.quantization.reset(), job.training.bf16 = false;
    CHECK(refused(job, plan) == Codes{"zero3-fetched-dtypes"});
  }
  SUBCASE("options one by one, all at once") {
    plan.zero_hpz_partition_size = 8;
    plan.zero_quantized_weights = true;
    plan.offload_param.device = OffloadDevice::nvme;
    job.adapter->modules_to_save = {"lm_head"};
    CHECK(refused(job, plan) ==
          Codes{"zero-nvme", "not-supported", "not-supported", "zero3-hpz", "zero3-modules-to-save"});
  }
}

}  // namespace qlp
