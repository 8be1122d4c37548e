#include "estimate/parallel_rules.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "estimate/closed_form.h"
#include "estimate/communication.h"
#include "estimate/dry_run.h"
#include "estimate/estimate.h"
#include "estimate/rank_report.h"
#include "estimate/step_work.h"
#include "plan/job_names.h"
#include "small_jobs.h"

using namespace qlp;

namespace {

/// Two layers of Llama-3.2-1B, 512 tokens, bf16 autocast.
JobSpec two_layers() {
  JobSpec job;
  job.model = llama_1b(2);
  job.model.tie_word_embeddings = true;
  job.training.seq_len = 512;
  job.training.bf16 = true;
  job.training.optimizer = named_optimizer("adamw_torch");
  job.cluster.gpu.capacity = Bytes{84'974'239'744};
  job.cluster.world_size = 2;
  job.cluster.mesh.tp = 2;
  return job;
}

JobSpec piped(std::int64_t stages, std::int64_t layers, std::int64_t microbatches) {
  JobSpec job = small_job(small_model(Family::llama));
  job.model.num_hidden_layers = layers;
  job.cluster.world_size = job.cluster.mesh.pp = stages;
  job.training.gradient_accumulation_steps = microbatches;
  return job;
}

RankReport play(const JobSpec& job, std::int64_t rank) {
  const auto run = dry_run(job, Single{}, rank);
  REQUIRE(run);
  return rank_report(*run, rank, false);
}

std::uint64_t held_after(const RankReport& report, const std::string& phase) {
  for (const PhaseReport& row : report.phases)
    if (row.name == phase) return row.held.requested.count();
  FAIL("no phase " << phase);
  return 0;
}

std::uint64_t elements_of(const JobSpec& job) {
  const auto run = dry_run(job, Single{}, 0);
  REQUIRE(run);
  return run->elements.total;
}

/// Elements that every rank has that shares the layers: norms and routers.
std::uint64_t on_each_rank(const ModelSpec& m) {
  const std::int64_t q = m.num_attention_heads * m.head_dim, kv = m.num_key_value_heads * m.head_dim;
  const bool by_head = m.family == Family::qwen3 || m.family == Family::qwen3_moe;
  std::int64_t elements = 5 * m.hidden_size;
  if (by_head) elements += 4 * m.head_dim;
  if (m.family == Family::olmo2) elements += 2 * (q + kv);
  for (std::int64_t layer = 0; layer < m.num_hidden_layers; ++layer)
    if (m.experts && m.experts->in_layer(layer)) elements += m.experts->num_experts * m.hidden_size;
  return static_cast<std::uint64_t>(elements);
}

/// A Mixtral of two small layers, shared by two ranks.
JobSpec small_mixtral() {
  JobSpec job = two_layers();
  ModelSpec& m = job.model;
  m = {};
  m.family = Family::mixtral;
  m.hidden_size = 1024, m.intermediate_size = 2048, m.num_hidden_layers = 2, m.vocab_size = 32000;
  m.num_attention_heads = 16, m.num_key_value_heads = 8, m.head_dim = 64, m.max_position_embeddings = 32768;
  m.experts = ExpertSpec{.num_experts = 8, .num_experts_per_tok = 2, .intermediate_size = 2048};
  return job;
}

/// Most that is requested in a phase.
std::uint64_t peak_of(const RankReport& report, const std::string& phase) {
  for (const PhaseReport& row : report.phases)
    if (row.name == phase) return row.peak.requested.count();
  FAIL("no phase " << phase);
  return 0;
}

/// OLMo 2 of two layers, shared by two ranks.
JobSpec two_layers_of_olmo2() {
  JobSpec job = two_layers();
  ModelSpec& m = job.model;
  m = {};
  m.family = Family::olmo2;
  m.hidden_size = 4096, m.intermediate_size = 11008, m.num_hidden_layers = 2, m.vocab_size = 100352;
  m.num_attention_heads = m.num_key_value_heads = 32, m.head_dim = 128, m.max_position_embeddings = 4096;
  return job;
}

std::string refusal_of(const JobSpec& job, const ShardingPlan& plan) {
  const auto run = dry_run(job, plan, 0);
  return run ? "" : run.error().front().code;
}

}  // namespace

// Requested bytes of rank 0 of 2: torch 2.14.1, transformers 5.24.0 (DistributedConfig(tp_size=2)) on PyTorch's
// allocator. The libraries' norm of sharded gradients takes some small tensors more.
TEST_CASE("estimate/parallel_rules: tensor parallelism as transformers runs it") {
  const RankReport report = play(two_layers(), 0);
  CHECK(report.training_peak.figures.requested.count() == 2605007130);
}

TEST_CASE("estimate/parallel_rules: the ranks that share layers hold the model together") {
  for (const Family family : {Family::llama, Family::mistral, Family::qwen2, Family::qwen3, Family::phi3, Family::olmo2,
                              Family::mixtral, Family::qwen3_moe}) {
    CAPTURE(name_of(family));
    JobSpec job = small_job(small_model(family));
    job.model.vocab_size = 132;
    const std::uint64_t whole = elements_of(job);
    job.cluster.world_size = job.cluster.mesh.tp = 2;
    CHECK(2 * elements_of(job) - on_each_rank(job.model) == whole);
    if (!job.model.experts) continue;
    job.cluster.mesh.ep = 2;  // whole experts, where it was a part of each
    CHECK(2 * elements_of(job) - on_each_rank(job.model) == whole);
  }
}

TEST_CASE("estimate/parallel_rules: LoRA's B is cut as the output features of its layer are") {
  JobSpec job = small_lora_job(small_model(Family::llama));
  job.model.vocab_size = 132;
  job.adapter->all_linear = false;
  job.adapter->target_modules = {"q_proj", "up_proj"};
  const auto whole = dry_run(job, Single{}, 0);
  job.cluster.world_size = job.cluster.mesh.tp = 2;
  const auto part = dry_run(job, Single{}, 0);
  REQUIRE(whole);
  REQUIRE(part);
  const auto of_a = static_cast<std::uint64_t>(2 * 2 * job.adapter->r * job.model.hidden_size);  // on both ranks
  CHECK(2 * part->elements.trainable - of_a == whole->elements.trainable);
  // torch 2.14.1, transformers 5.24.0, PEFT 0.21.2: "shape '[512, 512]' is invalid for input of size 524288"
  job.adapter->target_modules = {"o_proj"};
  CHECK(refusal_of(job, Single{}) == "tp-row-adapter");
}

// Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large Transformer Models", equation 2): tensor
// parallelism divides what attention and MLP keep inside, and leaves what is around them on every rank.
TEST_CASE("estimate/parallel_rules: of the activations of a layer what is inside of attention and MLP is divided") {
  const auto kept = [](std::int64_t tp) {
    const auto after_forward = [&](std::int64_t layers) {
      JobSpec job = two_layers();
      job.model = llama_1b(layers);
      job.training.bf16 = false;
      job.cluster.world_size = job.cluster.mesh.tp = tp;
      const RankReport report = play(job, 0);
      return held_after(report, "micro1.forward") - held_after(report, "prepare");
    };
    return after_forward(3) - after_forward(2);
  };
  constexpr std::uint64_t kTokens = 512, kQ = 2048, kKv = 512, kInner = 8192, kHeads = 32;
  // In bfloat16 q, k, v, what attention gives, gate, its activation, up and their product; in float32 a sum for each
  // head and token.
  constexpr std::uint64_t kInside = kTokens * (2 * (2 * kQ + 2 * kKv + 4 * kInner) + 4 * kHeads);
  CHECK(kept(1) - kept(2) == kInside / 2);
  CHECK(kept(2) - kept(4) == kInside / 4);
}

// As the first, with tables of their own: the gradient of the embedding stays that of the whole table.
TEST_CASE("estimate/parallel_rules: an embedding is cut whether or not the head is tied to it") {
  JobSpec job = two_layers();
  job.model.tie_word_embeddings = false;
  const RankReport report = play(job, 0);
  CHECK(report.training_peak.figures.requested.count() == 3514646798);
  CHECK(held_after(report, "micro1.backward") == 1573691660);
}

// As above, with other optimizers, which cut that gradient for each of their operations.
TEST_CASE("estimate/parallel_rules: optimizers take their part of the gradient of a cut embedding") {
  JobSpec job = two_layers();
  job.model.tie_word_embeddings = false;
  for (const auto& [optimizer, peak] : {std::pair{"adagrad", 4039962978}, {"rmsprop", 3130323214}}) {
    CAPTURE(optimizer);
    job.training.optimizer = named_optimizer(optimizer);
    CHECK(play(job, 0).training_peak.figures.requested.count() == static_cast<std::uint64_t>(peak));
  }
}

// As above, 128 tokens; adapters on q_proj, v_proj and gate_proj. Beside torchao's there are 32 bytes more, of rates
// that the Trainer keeps as tensors, with one rank too.
TEST_CASE("estimate/parallel_rules: optimizers that write into gradients, and one that takes no whole model") {
  JobSpec job = two_layers();
  job.training.seq_len = 128;
  job.training.optimizer = named_optimizer("adamw_torch_8bit");
  CHECK(refusal_of(job, Single{}) == "torchao-under-tp");
  job.adapter = AdapterSpec{.r = 8, .target_modules = {"q_proj", "v_proj", "gate_proj"}};
  CHECK(play(job, 0).training_peak.figures.requested.count() == 614829932 - 32);
  job.training.optimizer = named_optimizer("stable_adamw");
  CHECK(refusal_of(job, Single{}) == "stable-adamw-under-tp");
  job.training.optimizer = named_optimizer("schedule_free_adamw");
  CHECK(play(job, 0).training_peak.figures.requested.count() == 615885132);
  job.adapter.reset();
  CHECK(play(job, 0).training_peak.figures.requested.count() == 2605007130);
}

// As above, with tables that are not tied: the gradient that is written into stays whole, and what it is divided by is
// gathered.
TEST_CASE("estimate/parallel_rules: what schedule-free optimizers take beside the gradient of a cut embedding") {
  JobSpec job = two_layers();
  job.training.seq_len = 128;
  job.model.tie_word_embeddings = false;
  for (const auto& [optimizer, peak] :
       {std::pair{"schedule_free_adamw", 4039942414}, {"schedule_free_sgd", 2483331342}}) {
    CAPTURE(optimizer);
    job.training.optimizer = named_optimizer(optimizer);
    CHECK(peak_of(play(job, 0), "step1.optimizer") == static_cast<std::uint64_t>(peak));
  }
}

// As above, 128 tokens. Every rank has the biases of layers that are cut by input features, and adds its share.
TEST_CASE("estimate/parallel_rules: biases beside outputs that are summed") {
  JobSpec job = two_layers();
  job.training.seq_len = 128;
  job.model.qkv_bias = job.model.attention_bias = true;
  CHECK(play(job, 0).training_peak.figures.requested.count() == 2605064474);
  job.model.mlp_bias = true;
  CHECK(play(job, 0).training_peak.figures.requested.count() == 2605228314);
}

// As above. Outputs that ranks join: OLMo 2 of two layers.
TEST_CASE("estimate/parallel_rules: a family that joins its heads keeps its attention whole") {
  JobSpec job = two_layers_of_olmo2();
  CHECK(play(job, 0).training_peak.figures.requested.count() == 6562546190);
  // "The size of tensor a (4096) must match the size of tensor b (2048) at non-singleton dimension 2"
  job.adapter = AdapterSpec{.r = 8, .target_modules = {"q_proj", "up_proj"}};
  CHECK(refusal_of(job, Single{}) == "tp-joined-adapter");
}

// As above: evaluate() on batches of 8, then save_model(), which takes whole weights to the host one by one.
TEST_CASE("estimate/parallel_rules: a model whose layers are shared is evaluated and saved as transformers does it") {
  JobSpec job = two_layers_of_olmo2();
  job.training.evaluation = EvaluationSpec{.num_samples = 16};
  job.training.saves_model = true;
  const RankReport report = play(job, 0);
  CHECK(peak_of(report, "evaluation") == 7841866384);
  CHECK(peak_of(report, "save") == 4519846404);

  job = two_layers();
  job.model.tie_word_embeddings = false;
  job.training.evaluation = EvaluationSpec{.num_samples = 8};
  CHECK(peak_of(play(job, 0), "evaluation") == 7228289360);
  job.cluster.world_size = 4, job.training.evaluation->num_samples = 32;
  const auto beside = dry_run(job, Fsdp2{}, 0);
  REQUIRE(beside);
  CHECK(peak_of(rank_report(*beside, 0, false), "evaluation") == 6783146320);
}

// As above; with expert parallelism as if the routers sent tokens evenly.
TEST_CASE("estimate/parallel_rules: experts cut, spread, and spread beside FSDP2, as transformers runs them") {
  JobSpec job = small_mixtral();
  CHECK(play(job, 0).training_peak.figures.requested.count() == 912433422);
  job.cluster.mesh.ep = 2;
  CHECK(play(job, 0).training_peak.figures.requested.count() == 840605966);
  job.cluster.mesh.tp = 1;
  const auto beside = dry_run(job, Fsdp2{}, 0);
  REQUIRE(beside);
  CHECK(rank_report(*beside, 0, false).training_peak.figures.requested.count() == 899059058);
  job.cluster.mesh = {.tp = 2};
  job.adapter = AdapterSpec{.r = 8, .target_modules = {"q_proj", "v_proj"}};
  CHECK(play(job, 0).training_peak.figures.requested.count() == 419608972);
}

// As above, with r 8 on q_proj, k_proj and v_proj.
TEST_CASE("estimate/parallel_rules: LoRA under tensor parallelism as PEFT runs it") {
  JobSpec job = two_layers();
  job.adapter = AdapterSpec{.r = 8, .target_modules = {"q_proj", "k_proj", "v_proj"}};
  CHECK(play(job, 0).training_peak.figures.requested.count() == 1251012940);
}

TEST_CASE("estimate/parallel_rules: stages hold the model together, and all of its optimizer state") {
  for (const std::int64_t stages : {1, 2, 3, 5}) {
    CAPTURE(stages);
    const JobSpec job = piped(stages, 7, 5);
    std::uint64_t elements = 0;
    Bytes optimizer_state;
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      const auto run = dry_run(job, Single{}, rank);
      REQUIRE(run);
      elements += run->elements.total;
      optimizer_state +=
          rank_report(*run, rank, false).persistent_categories[static_cast<std::size_t>(Category::optimizer_state)];
    }
    CHECK(elements == count_parameters(job).total);
    // Of blocks of 512 bytes: as much as the whole, whatever the stages.
    const auto whole = dry_run(piped(1, 7, 5), Single{}, 0);
    REQUIRE(whole);
    CHECK(optimizer_state ==
          rank_report(*whole, 0, false).persistent_categories[static_cast<std::size_t>(Category::optimizer_state)]);
  }
}

TEST_CASE("estimate/parallel_rules: a stage of transformers 4 fills a cache for its own layers") {
  JobSpec job = piped(2, 5, 4);
  job.stack.transformers = {4, 57, 1};
  job.training.gradient_checkpointing = GradientCheckpointing::none;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const auto run = dry_run(job, Single{}, rank);
    REQUIRE(run);
    CHECK(run->end.requested.current > 0);
  }
  job.cluster.world_size = 4;
  CHECK(dry_run(job, Fsdp2{}, 3));
}

TEST_CASE("estimate/parallel_rules: a stage has as many microbatches in flight as there are stages from it on") {
  const JobSpec job = piped(5, 5, 8);
  std::vector<RankReport> ranks;
  for (std::int64_t rank = 0; rank < 5; ++rank) ranks.push_back(play(job, rank));
  // What one microbatch leaves behind, of stages between the first and the last.
  const std::uint64_t kept = held_after(ranks[1], "micro3.forward") - held_after(ranks[1], "micro2.forward");
  CHECK(kept > 0);
  for (const std::size_t stage : {std::size_t{1}, std::size_t{2}}) {
    CHECK(ranks[stage].training_peak.figures.requested.count() -
              ranks[stage + 1].training_peak.figures.requested.count() ==
          kept);
  }
}

TEST_CASE("estimate/parallel_rules: every stage is played and the worst decides") {
  JobSpec job = piped(3, 3, 4);
  job.plans = {{"single", Single{}}};
  const Report report = estimate(job);
  const PlanReport& plan = report.plans.front();
  REQUIRE(plan.ranks.size() == 3);
  for (const RankReport& rank : plan.ranks) CHECK(rank.peak.device_used <= plan.ranks.front().peak.device_used);
  REQUIRE(report.resources);
  CHECK(report.resources->gpus == 3);
}

TEST_CASE("estimate/parallel_rules: stages beside data parallelism reduce their gradients once a step") {
  for (const ShardingPlan& plan : std::initializer_list<ShardingPlan>{Ddp{}, Fsdp2{}}) {
    const auto reduced = [&](std::int64_t microbatches) {
      JobSpec job = piped(2, 4, microbatches);
      job.cluster.world_size = 4;
      const auto run = dry_run(job, plan, 0);
      REQUIRE(run);
      Bytes payload;
      for (const CollectiveTotal& total : communication_of(last_step(*run, job.training)).collectives) {
        const bool of_replicas = total.group.axis == MeshAxis::dp_replicate || total.group.axis == MeshAxis::dp_shard;
        if (of_replicas && total.kind != Collective::all_gather) payload += total.payload;
      }
      return payload;
    };
    CHECK(reduced(2) > Bytes{1000});
    CHECK(reduced(2) == reduced(16));
  }
}

// 'Resuming is not supported for models sharded at load time'
TEST_CASE("estimate/parallel_rules: no checkpoint of what ranks share, and nothing saved of stages") {
  const auto refusals = [](JobSpec job, const ShardingPlan& plan) {
    CHECK(refusal_of(job, plan).empty());
    job.training.saves_model = true;
    const std::string saved = refusal_of(job, plan);
    job.training.saves_model = false, job.training.checkpoint = StateDictType::full;
    return std::pair{saved, refusal_of(job, plan)};
  };
  const std::pair<std::string, std::string> no_checkpoint{"", "mesh-checkpoint"}, none{"mesh-phases", "mesh-phases"};
  CHECK(refusals(two_layers(), Single{}) == no_checkpoint);
  JobSpec beside = two_layers();
  beside.cluster.world_size = 4;
  CHECK(refusals(beside, Fsdp2{}) == no_checkpoint);
  CHECK(refusals(piped(3, 3, 3), Single{}) == none);
}

// torch 2.14.1, transformers 5.24.0, peft 0.21.2, with 128 tokens.
TEST_CASE("estimate/parallel_rules: adapters are saved with all that is beside them, two meshes one after the other") {
  JobSpec job = two_layers();
  job.training.seq_len = 128, job.model.checkpoint_dtype = DType::bfloat16;
  job.adapter = AdapterSpec{.r = 8, .target_modules = {"q_proj", "v_proj", "gate_proj"}};
  job.training.saves_model = true;
  CHECK(peak_of(play(job, 0), "save") == 928911620);
  job.adapter.reset();
  CHECK(peak_of(play(job, 0), "save") == 1695346948);
  job.cluster.world_size = 4;
  const auto beside = dry_run(job, Fsdp2{}, 0);
  REQUIRE(beside);
  CHECK(peak_of(rank_report(*beside, 0, false), "save") == 1381529860);
}

TEST_CASE("estimate/parallel_rules: what is not planned is refused with the reason") {
  JobSpec job = piped(3, 3, 2);
  CHECK(refusal_of(job, Single{}) == "pp-microbatches");
  job.training.gradient_accumulation_steps = 3;
  CHECK(refusal_of(job, Single{}).empty());
  CHECK(refusal_of(job, Fsdp1{}) == "pp-plan");
  CHECK(refusal_of(job, Zero{.stage = 1}) == "pp-plan");
  job.model.tie_word_embeddings = true;
  CHECK(refusal_of(job, Single{}) == "pp-tied");
  job = piped(4, 3, 4);
  CHECK(refusal_of(job, Single{}) == "pp-layers");

  job = small_mixtral();
  job.cluster.world_size = 4, job.cluster.gpus_per_node = 1, job.cluster.mesh = {.ep = 4};
  CHECK(refusal_of(job, Fsdp2{.hybrid = true}) == "ep-mesh");  // shards within a node, which has one rank

  job = two_layers();
  job.adapter = AdapterSpec{.r = 8, .target_modules = {"q_proj"}, .modules_to_save = {"post_attention_layernorm"}};
  CHECK(refusal_of(job, Single{}) == "tp-copied-norms");

  job.adapter = AdapterSpec{.r = 8, .use_dora = true, .target_modules = {"q_proj"}};
  CHECK(refusal_of(job, Single{}) == "tp-dora");

  job = two_layers();
  CHECK(refusal_of(job, Ddp{}) == "tp-ddp");
  CHECK(refusal_of(job, Zero{}) == "tp-zero");
  for (const char* optimizer : {"adafactor", "adamw_8bit"}) {
    job.training.optimizer = named_optimizer(optimizer);
    CHECK_FALSE(refusal_of(job, Single{}).empty());
  }
  job.cluster.mesh.tp = 3;
  CHECK(refusal_of(job, Single{}) == "tp-does-not-divide");
  job = two_layers();
  job.stack.transformers = {4, 57, 1};
  CHECK(refusal_of(job, Single{}) == "tp-stack");
  job = two_layers();
  job.cluster.mesh = {.ep = 2};
  CHECK(refusal_of(job, Fsdp2{}) == "ep-dense");
  job = small_mixtral();
  job.cluster.mesh = {.tp = 2, .ep = 2};
  CHECK(refusal_of(job, Single{}).empty());
  CHECK(refusal_of(job, Zero{}) == "ep-plan");
  job.model.experts->num_experts = 7;
  CHECK(refusal_of(job, Single{}) == "ep-does-not-divide");
  job.cluster.mesh = {.ep = 2};
  job.model.experts->num_experts = 8;
  CHECK(refusal_of(job, Single{}) == "ep-mesh");
}
