#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "estimate/estimate.h"
#include "estimate/phase_rules.h"
#include "estimate/small_jobs.h"

using namespace qlp;

namespace {

/// Llama 3.2 1B cut to two layers, as the real libraries ran it on a null GPU (torch 2.8.0, transformers 4.57.1,
/// peft 0.18.0, accelerate 1.15.0), with bf16 and 128 tokens.
JobSpec two_layers(std::int64_t world_size) {
  JobSpec job;
  job.model = llama_1b(2);
  job.model.tie_word_embeddings = true, job.model.checkpoint_dtype = DType::bfloat16;
  job.training.seq_len = 128;
  job.training.bf16 = true;
  job.cluster.world_size = world_size;
  job.cluster.gpu.capacity = Bytes{std::uint64_t{80} << 30};
  job.stack = kOlder;
  return job;
}

AdapterSpec lora() {
  AdapterSpec adapter;
  adapter.r = 16;
  adapter.all_linear = true;
  return adapter;
}

PlanReport run(JobSpec job, NamedPlan plan) {
  job.plans = {std::move(plan)};
  Report report = estimate(job);
  REQUIRE_MESSAGE(report.plans.front().applicable(), report.plans.front().reason());
  return report.plans.front();
}

const PhaseReport* find(const PlanReport& plan, std::string_view name) {
  const auto& phases = plan.ranks.front().phases;
  const auto found = std::ranges::find(phases, name, &PhaseReport::name);
  return found == phases.end() ? nullptr : &*found;
}

const PhaseReport& phase(const PlanReport& plan, std::string_view name) {
  const PhaseReport* found = find(plan, name);
  REQUIRE(found != nullptr);
  return *found;
}

const NamedPlan kSingle{"single", Single{}}, kDdp{"ddp", Ddp{}}, kFsdp1{"fsdp1-full-shard", Fsdp1{}},
    kFsdp2{"fsdp2", Fsdp2{}};

}  // namespace

TEST_CASE("estimate/phases: a job that asks for neither ends after training") {
  const PlanReport plan = run(two_layers(1), kSingle);
  CHECK(plan.ranks.front().phases.back().name == "end");
}

// Seen in cases of the real libraries: a bfloat16 checkpoint loaded as float16, the table on the GPU twice.
TEST_CASE("estimate/phases: transformers 4.57 casts what is stored in another dtype on the GPU") {
  JobSpec job = two_layers(1);
  job.dtype = DType::float16, job.training.bf16 = false, job.training.seq_len = 200;
  job.adapter = lora();
  job.adapter->r = 8;
  PhaseReport load = phase(run(job, kSingle), "load");
  CHECK(load.peak.requested == Bytes{1050673152});
  CHECK(load.held.requested == Bytes{768626816});
  job.quantization = QuantizationSpec{.double_quant = false, .compute_dtype = DType::float16, .prepare_kbit = true};
  load = phase(run(job, kSingle), "load");
  CHECK(load.peak.requested == Bytes{1050673152});
  CHECK(load.held.requested == Bytes{593777664});
}

// Traced: a 4-bit base under fsdp2-no-reshard holds 565 MiB of the GPU before it is cut with transformers 5.24.
TEST_CASE("estimate/phases: transformers 5 leaves 4-bit weights that rank 0 could load for all on every GPU") {
  const auto held = [](Version transformers, Loading loading) {
    JobSpec job = two_layers(4);
    job.quantization = QuantizationSpec{.quant_storage = DType::bfloat16};
    job.adapter = lora();
    job.stack.transformers = transformers, job.loading = loading;
    return phase(run(job, kFsdp1), "load").held.requested;
  };
  CHECK(held({5, 24, 0}, Loading::rank0) == held({5, 24, 0}, Loading::gpu));
  CHECK(held({4, 57, 1}, Loading::rank0).count() < held({4, 57, 1}, Loading::gpu).count() / 8);
}

TEST_CASE("estimate/phases: tables that accelerate names stay whole on the GPU until FSDP2 has cut everything") {
  JobSpec job = two_layers(4);
  job.adapter = lora();
  job.loading = Loading::cpu;
  CHECK(phase(run(job, kFsdp2), "prepare").peak.requested.count() == 719037568);
  job.model.tie_word_embeddings = false;
  CHECK(phase(run(job, kFsdp2), "prepare").peak.requested.count() == 1375708288);
}

TEST_CASE("estimate/phases: evaluation leaves FSDP's root gathered; what is held is as in the real libraries") {
  struct Row {
    NamedPlan plan;
    std::int64_t ranks;
    std::uint64_t held;
  };
  const Row rows[] = {{kDdp, 2, 808210560}, {kFsdp1, 4, 738763844}, {kFsdp2, 4, 738763904}};
  for (const Row& row : rows) {
    JobSpec job = two_layers(row.ranks);
    job.adapter = lora();
    job.training.evaluation = EvaluationSpec{.num_samples = 96};
    job.loading = Loading::gpu;
    CHECK(phase(run(job, row.plan), "evaluation").held.requested == Bytes{row.held});
  }
}

TEST_CASE("estimate/phases: saving gathers unit by unit under FSDP1, parameter by parameter under FSDP2") {
  JobSpec job = two_layers(4);
  job.loading = Loading::gpu;
  job.training.saves_model = true;
  {
    JobSpec full = job;
    full.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
    const PlanReport plan = run(full, kFsdp1);
    CHECK(phase(plan, "end").held.requested == Bytes{1554292804});
    CHECK(phase(plan, "save").peak.requested == Bytes{2220660804});
    CHECK(phase(plan, "save").held.requested == Bytes{1169979460});  // gradients that were kept are gone
  }
  job.adapter = lora();
  job.training.evaluation = EvaluationSpec{};
  const PlanReport plan = run(job, kFsdp2);
  CHECK(phase(plan, "save").peak.requested == Bytes{738763904});
  CHECK(phase(plan, "save").held.requested == Bytes{213423232});  // the root is cut again
  CHECK(phase(plan, "save").host_peak == Bytes{1299599360});      // of the state dict, the tied table twice
  // Under FSDP1 the root's flat parameter is still on the host when its parameters are cloned.
  CHECK(phase(run(job, kFsdp1), "save").host_peak == Bytes{1299599360 + 525340672});
}

TEST_CASE("estimate/phases: evaluation and saving under ZeRO, as DeepSpeed 0.18.3 ran them") {
  JobSpec job = two_layers(4);
  job.adapter = lora();
  job.adapter->r = 8;
  job.training.seq_len = 256;
  job.training.optimizer = named_optimizer("adamw_torch");
  job.training.evaluation = EvaluationSpec{.per_device_eval_batch_size = 2, .num_samples = 96};
  job.training.saves_model = true;
  job.loading = Loading::gpu;
  const PlanReport whole = run(job, {"zero2", Zero{.stage = 2}});
  CHECK(phase(whole, "evaluation").peak.requested == Bytes{1450070500});
  CHECK(phase(whole, "evaluation").held.requested == Bytes{789188676});
  CHECK(phase(whole, "save").peak.requested == Bytes{789188676});
  CHECK(phase(whole, "save").host_peak >= Bytes{768626688});  // every rank takes all of it to the host

  job.loading = Loading::cpu;
  job.training.gradient_checkpointing = GradientCheckpointing::reentrant;
  Zero stage3{.stage = 3, .overlap_comm = true};
  // DeepSpeed's own checkpoint: parts of the frozen base are copied, nothing is gathered.
  const PlanReport own = run(job, {"zero3", stage3});
  CHECK(phase(own, "save").peak.requested <= phase(own, "evaluation").held.requested);
  CHECK(phase(own, "save").host_peak >= Bytes{768626688 / 4});
  CHECK(phase(own, "save").host_peak < Bytes{768626688 / 2});
  stage3.stage3_gather_16bit_weights_on_model_save = true;
  const PlanReport cut = run(job, {"zero3", stage3});
  CHECK(phase(cut, "evaluation").peak.requested == Bytes{2642931689});
  CHECK(phase(cut, "evaluation").held.requested == Bytes{1982049865});  // what was fetched last is not freed
  CHECK(phase(cut, "save").held.requested == Bytes{1213443657});
  CHECK(phase(cut, "save").host_peak >= Bytes{768626688});
}

// Seen with the real libraries on a null GPU, 2 ranks (torch 2.14.1, transformers 5.24.0, accelerate 1.15.0; DeepSpeed
// 0.18.3 on torch 2.8.0, transformers 4.57.1).
TEST_CASE("estimate/phases: a checkpoint gathers what is cut, one tensor or one unit at a time, or nothing in shards") {
  JobSpec job = two_layers(2);
  job.loading = Loading::cpu;
  job.training.optimizer = named_optimizer("adamw_torch");
  const auto peak = [&job](const NamedPlan& plan, StateDictType type) {
    job.training.checkpoint = type;
    return phase(run(job, plan), "step1.save").peak.requested.count();
  };
  Zero stage3{.stage = 3, .overlap_comm = true};
  CHECK(peak({"zero3", stage3}, StateDictType::full) == 4091566701);  // DeepSpeed's own checkpoint alone
  job.stack = kNewer;
  CHECK(peak(kFsdp2, StateDictType::sharded) == 2322919714);
  CHECK(peak(kFsdp2, StateDictType::automatic) == 2322919714);
  CHECK(peak(kFsdp2, StateDictType::full) == 3373592846);  // the table in float32 is 1050673152
  CHECK(peak(kFsdp1, StateDictType::full) == 4424282260);
  CHECK(peak(kFsdp1, StateDictType::automatic) == 4424282260);
  CHECK(peak(kFsdp1, StateDictType::sharded) == 4424282260);
  // Beside a group for the CPU the chunks of all states stay on the GPU, where nothing else is.
  CHECK(peak({"fsdp1-full-shard", Fsdp1{.cpu_offload = true}}, StateDictType::sharded) == 3694424208);
  job.adapter = lora();
  CHECK(peak(kFsdp2, StateDictType::full) == 935143694);  // the frozen table, under its second name
  CHECK(peak(kFsdp2, StateDictType::sharded) == 409807138);
}

TEST_CASE("estimate/phases: the first rank gets the whole optimizer of a full checkpoint on its host") {
  JobSpec job = two_layers(4);
  job.loading = Loading::gpu;
  const auto host = [&job](StateDictType type) {
    job.training.checkpoint = type;
    return *run(job, kFsdp2).host;
  };
  const std::uint64_t states = 2ULL * 4 * 384313344;  // of two averages in float32
  const HostReport full = host(StateDictType::full);
  CHECK(full.rank0.phase == "step1.save");
  CHECK(full.rank0.peak.count() >= states);
  CHECK(full.others->peak.count() < states / 16);
  const HostReport sharded = host(StateDictType::sharded);
  CHECK(sharded.rank0.peak.count() < states / 4 + states / 16);
  CHECK(sharded.rank0.peak.count() >= states / 4);
}

TEST_CASE("estimate/phases: checkpoints that the libraries do not write are refused") {
  JobSpec job = two_layers(2);
  job.training.checkpoint = StateDictType::full;
  job.plans = {{"fsdp1-no-shard", Fsdp1{.sharding_strategy = ShardingStrategy::no_shard, .use_orig_params = false}}};
  CHECK(estimate(job).plans.front().refusals.front().code == "fsdp1-checkpoint-no-shard");
  JobSpec alone = job;
  alone.cluster.world_size = 1, alone.plans = {{"fsdp1-full-shard", Fsdp1{.use_orig_params = false}}};
  CHECK(estimate(alone).plans.front().refusals.front().code == "fsdp1-checkpoint-no-shard");
  job.adapter = lora();
  job.stack.accelerate = {1, 14, 0};
  job.plans = {kFsdp2};
  CHECK(estimate(job).plans.front().refusals.front().code == "fsdp2-checkpoint-adapter");
  job.training.checkpoint = StateDictType::sharded;
  CHECK(estimate(job).plans.front().applicable());
}

TEST_CASE("estimate/phases: what a mesh cuts is saved from transformers 5 on") {
  JobSpec job = two_layers(4);
  job.cluster.gpus_per_node = 2;
  job.plans = {{"fsdp2-hsdp", Fsdp2{.hybrid = true}}};
  const auto refused = [&] {
    const Diagnostics refusals = estimate(job).plans.front().refusals;
    return refusals.empty() ? "" : refusals.front().code + " " + refusals.front().key_path;
  };
  CHECK(refused().empty());
  job.training.saves_model = true;
  CHECK(refused() == "mesh-save training.save");
  job.adapter = lora();
  CHECK(refused() == "mesh-save training.save");
  job.training.saves_model = false, job.training.checkpoint = StateDictType::sharded;
  CHECK(refused() == "mesh-save training.checkpoint");
  job.stack.transformers = {5, 24, 0};
  CHECK(refused().empty());
}

TEST_CASE("estimate/phases: states that differ from rank to rank are gathered in no checkpoint") {
  JobSpec job = two_layers(2);
  job.stack = kNewer;
  job.adapter = lora();
  const auto refused = [&job](const char* optimizer, const ShardingPlan& plan, StateDictType type) {
    job.training.checkpoint = type;
    job.training.optimizer = named_optimizer(optimizer);
    const Diagnostics refusals = check_phases(job, plan, StackProfile(job.stack));
    return refusals.empty() ? "" : refusals.front().code;
  };
  const ShardingPlan original = Fsdp1{.use_orig_params = true}, flat = Fsdp1{.use_orig_params = false};
  for (const StateDictType type : {StateDictType::full, StateDictType::sharded}) {
    for (const char* optimizer : {"adamw_8bit", "lion_32bit", "ademamix", "paged_adamw_32bit"})
      CHECK(refused(optimizer, original, type) == "fsdp1-checkpoint-bitsandbytes");
    for (const char* optimizer : {"adamw_torch_8bit", "adamw_torch_4bit"})
      CHECK(refused(optimizer, original, type) == "fsdp1-checkpoint-torchao");
    for (const char* optimizer : {"adamw_8bit", "lion_8bit", "adamw_torch_8bit", "adamw_torch_4bit"})
      CHECK(refused(optimizer, flat, type).empty());  // all ranks have as much of one
    for (const char* optimizer : {"paged_adamw_8bit", "paged_adamw_32bit", "ademamix", "paged_ademamix_8bit"})
      CHECK(refused(optimizer, flat, type).empty());  // beside plain tensors
    for (const ShardingPlan& plan : {original, flat})
      CHECK(refused("stable_adamw", plan, type) == "fsdp1-checkpoint-stable-adamw");
    CHECK(refused("adamw_torch", original, type).empty());
    CHECK(refused("adamw_8bit", Ddp{}, type).empty());
  }
  CHECK(refused("adamw_torch_8bit", Fsdp2{}, StateDictType::full) == "fsdp2-checkpoint-torchao");
  CHECK(refused("adamw_torch_8bit", Fsdp2{}, StateDictType::sharded).empty());
  CHECK(refused("adamw_torch", Fsdp2{}, StateDictType::full).empty());
  job.stack.bitsandbytes = {0, 48, 0};
  CHECK(refused("adamw_8bit", original, StateDictType::full) == "fsdp1-checkpoint-few-bits");
  CHECK(refused("lion_32bit", original, StateDictType::full).empty());
  CHECK(refused("paged_adamw_8bit", flat, StateDictType::full) == "fsdp1-checkpoint-paged");
  CHECK(refused("ademamix_8bit", flat, StateDictType::full) == "fsdp1-checkpoint-ademamix");
}

TEST_CASE("estimate/phases: only the first rank holds the gathered model, on the host") {
  JobSpec job = two_layers(4);
  job.training.saves_model = true;
  job.adapter = lora();
  const std::uint64_t base = 768626688;  // 16-bit weights of the base
  for (const NamedPlan& plan : {kFsdp1, kFsdp2}) {
    const HostReport host = *run(job, plan).host;
    CHECK(host.rank0.phase == "save");
    CHECK(host.rank0.peak.count() > base);
    REQUIRE(host.others);
    CHECK(host.others->peak.count() < base / 10);
  }
  // Adapters alone leave the GPU where nothing was cut.
  const HostReport host = *run(job, kDdp).host;
  CHECK(host.rank0.categories[static_cast<std::size_t>(Category::adapter)].count() > 0);
  CHECK(host.rank0.peak.count() < base / 10);
}

TEST_CASE("estimate/phases: files are written one after the other") {
  JobSpec job = two_layers(1);
  job.model.num_hidden_layers = 80;
  job.training.saves_model = true;
  const auto host_peak = [&job] { return phase(run(job, kSingle), "save").host_peak.count(); };
  job.stack.transformers = {4, 57, 1};
  CHECK(host_peak() <= 5'000'000'000);
  job.stack.transformers = {5, 24, 0};
  CHECK(host_peak() > 5'000'000'000);
}

TEST_CASE("estimate/phases: kept predictions grow with the evaluation set, unless they go to the host") {
  JobSpec job = two_layers(2);
  job.adapter = lora();
  const auto peak = [&job](std::int64_t samples, std::optional<std::int64_t> accumulation, bool loss_only) {
    job.training.evaluation = EvaluationSpec{.per_device_eval_batch_size = 2,
                                             .prediction_loss_only = loss_only,
                                             .num_samples = samples,
                                             .eval_accumulation_steps = accumulation};
    return phase(run(job, kDdp), "evaluation").peak.requested.count();
  };
  const std::uint64_t batch = std::uint64_t{2} * 2 * 128 * 128256 * 4;  // of both ranks, in float32
  CHECK(peak(80, {}, false) - peak(40, {}, false) >= 2 * 10 * batch);   // what was there, and with the new batch
  CHECK(peak(80, 4, false) == peak(40, 4, false));
  CHECK(peak(80, {}, true) - peak(40, {}, true) < 4096);
  CHECK(peak(80, 4, false) < peak(80, {}, false));
}

TEST_CASE("estimate/phases: dropout is off in evaluation") {
  JobSpec job = two_layers(1);
  job.adapter = lora();
  job.training.evaluation = EvaluationSpec{};
  const auto peak = [&job] { return phase(run(job, kSingle), "evaluation").peak.requested; };
  const Bytes without = peak();
  job.adapter->lora_dropout = 0.5;
  CHECK(peak() == without);
}

TEST_CASE("estimate/phases: what is not worked out is refused") {
  JobSpec job = two_layers(1);
  job.training.evaluation = EvaluationSpec{};
  job.training.loss = Loss::liger;
  job.plans = {kSingle};
  CHECK(estimate(job).plans.front().reason().find("evaluation with Liger") != std::string::npos);
  job = two_layers(1);
  job.training.saves_model = true;
  job.plans = {kFsdp1};
  CHECK(estimate(job).plans.front().reason().find("offload_to_cpu=True and NO_SHARD") != std::string::npos);
}
