#include "config/job_writer.h"

#include <doctest/doctest.h>

#include "config/job_reader.h"
#include "config/model_catalogue.h"

using namespace qlp;

namespace {

JobSpec again(const JobSpec& job) {
  const auto text = to_yaml(job);
  const auto document = read_job(text, "again.yaml", DiskFiles());
  if (!document)
    for (const auto& e : document.error()) MESSAGE(e.key_path << ": " << e.message << "\n" << text);
  REQUIRE(document);
  return document->job;
}

/// Every option other than its default.
Fsdp1 other_fsdp1() {
  return {
      .sharding_strategy = ShardingStrategy::hybrid_shard,
      .use_orig_params = false,
      .cpu_offload = true,
      .backward_prefetch = BackwardPrefetch::backward_post,
      .forward_prefetch = true,
      .limit_all_gathers = false,
      .auto_wrap_policy = WrapPolicy::size_based_wrap,
      .min_num_params = 12'345,
      .mixed_precision_policy = {.param_dtype = DType::float16, .reduce_dtype = DType::float32, .buffer_dtype = {}}};
}

}  // namespace

TEST_CASE("config/job_writer: shipped jobs come back as they went") {
  const DiskFiles files;
  for (const auto& name : files.list("configs")) {
    if (!name.ends_with(".yaml")) continue;
    CAPTURE(name);
    const auto job = read_job_file("configs/" + name)->job;
    CHECK(again(job) == job);
    CHECK(to_yaml(again(job)) == to_yaml(job));
  }
}

TEST_CASE("config/job_writer: every model of the catalogue comes back as it went") {
  for (const auto name : model_names()) {
    CAPTURE(name);
    const auto text =
        "schema: 1\nmodel: {name: " + std::string(name) + "}\ntraining: {seq_len: 8}\ncluster: {gpu: A100 SXM4 80GB}\n";
    const auto document = read_job(text, "a.yaml", DiskFiles());
    REQUIRE(document);
    CHECK(again(document->job).model == document->job.model);
  }
}

TEST_CASE("config/job_writer: nothing that a job can say is lost") {
  auto job = read_job_file("configs/tiny-qlora.yaml")->job;
  job.model.name = "odd: \"name\" # \\ \x01 \xC3\xA9";
  job.model.attention_bias = job.model.qkv_bias = job.model.mlp_bias = true;
  job.model.checkpoint_dtype = DType::float16;
  job.model.stacked_experts = true;
  job.loading = Loading::cpu;
  job.quantization = QuantizationSpec{QuantType::fp4, true, DType::float32, DType::float16, true};
  job.adapter = AdapterSpec{.r = 3,
                            .lora_alpha = 0.1,
                            .lora_dropout = 1.0 / 3,
                            .use_dora = true,
                            .use_rslora = true,
                            .all_linear = false,
                            .target_modules = {},
                            .target_pattern = ".*\\.(q|v)_proj",
                            .exclude_modules = {"a", "no"},
                            .target_parameters = {"experts.down_proj"},
                            .modules_to_save = {"lm_head", "no", "10"},
                            .trainable_token_indices = {7, 0},
                            .rank_pattern = {{"a.b", 1}, {"^x$", 2}},
                            .alpha_pattern = {{"b", 0.1}},
                            .bias = AdapterBias::lora_only,
                            .autocast_adapter_dtype = false,
                            .dtype = DType::float16};
  job.training = TrainingSpec{.micro_batch_size = 4,
                              .seq_len = 333,
                              .gradient_accumulation_steps = 2,
                              .sync_each_batch = true,
                              .gradient_checkpointing = GradientCheckpointing::reentrant,
                              .bf16 = true,
                              .tf32 = true,
                              .optimizer = named_optimizer("paged_adamw_8bit"),
                              .max_grad_norm = 0.3,
                              .attention = Attention::flash_attention_2,
                              .loss = Loss::chunked,
                              .evaluation = EvaluationSpec{.per_device_eval_batch_size = 3,
                                                           .prediction_loss_only = false,
                                                           .num_samples = 5,
                                                           .eval_accumulation_steps = 2},
                              .saves_model = true,
                              .checkpoint = StateDictType::sharded,
                              .num_steps = 7};
  job.cluster.gpu.compute_capability = 120;
  job.cluster.gpu.capacity = Bytes{12345678901};
  job.cluster.gpu.capacity_source = "cluster.memory of the job file";
  job.cluster.used_by_others = Bytes{1};
  job.cluster.host_memory = Bytes{1ULL << 40};
  job.cluster.margin = 0.033;
  job.cluster.intra_node_bandwidth = Bytes{1'234};
  job.cluster.inter_node_bandwidth = Bytes{12'500'000'000};
  job.cluster.world_size = 24, job.cluster.mesh = {.tp = 2, .cp = 1, .pp = 3, .ep = 4};
  job.plans = {{"ddp", Ddp{7, true}}, {"fsdp1-hybrid-shard", other_fsdp1()}};
  job.plans.push_back({"fsdp2", Fsdp2{.reshard_after_forward = 4,
                                      .ignored_params = Fsdp2Ignored::adapter,
                                      .auto_wrap_policy = Fsdp2Wrap::no_wrap,
                                      .forward_prefetch = 1,
                                      .backward_prefetch = 2,
                                      .mp_policy = {.param_dtype = PolicyDType::none,
                                                    .reduce_dtype = PolicyDType::float32,
                                                    .output_dtype = std::nullopt,
                                                    .cast_forward_inputs = false},
                                      .cpu_offload = true,
                                      .pin_memory = false}});
  job.plans.push_back({"fsdp2-hsdp", Fsdp2{.reshard_after_forward = false, .hybrid = true, .dp_shard_size = 2}});
  job.stack.torch = {2, 4, 1};
  job.allocator.equal_blocks = EqualBlocks::lowest_address;
  CHECK(again(job) == job);

  job.adapter->target_pattern.clear();
  job.adapter->all_linear = true;
  job.model.family = Family::qwen3;
  job.model.mlp_bias = false;
  job.model.sliding_window = 16;
  job.model.first_sliding_layer = 1;
  CHECK(again(job) == job);

  job.model.family = Family::gemma2;
  job.model.first_sliding_layer = 0;
  job.model.attn_logit_softcapping = 12.5;
  CHECK(again(job) == job);

  job.model.attn_logit_softcapping.reset(), job.model.final_logit_softcapping.reset();
  job.model.family = Family::qwen3_moe;
  job.model.experts = ExpertSpec{16, 4, 48, false, 2};
  CHECK(again(job) == job);
  job.model.family = Family::mixtral;
  job.model.experts =
      ExpertSpec{.num_experts = 4, .num_experts_per_tok = 1, .intermediate_size = job.model.intermediate_size};
  job.model.attention_bias = job.model.qkv_bias = false;
  CHECK(again(job) == job);
  job.model.experts.reset();

  job.model.family = Family::phi3;
  job.model.attention_bias = job.model.qkv_bias = false;
  job.model.attn_logit_softcapping.reset();
  job.model.rope = RopeKind::longrope;
  job.model.original_max_position_embeddings = 99;
  job.model.partial_rotary_factor = 0.75;
  CHECK(again(job) == job);
}
