#include "estimate/closed_form.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "estimate/dry_run.h"
#include "estimate/small_jobs.h"
#include "model/class_names.h"
#include "model/parameter_count.h"
#include "plan/catalogue.h"
#include "plan/stack_profile.h"

namespace qlp {
namespace {

/// What the dry run holds after the last step.
CategoryBytes held(const DryRun& run) {
  CategoryBytes sums{};
  for (const LiveAllocation& block : run.timeline.live_at(run.last_event))
    sums[static_cast<std::size_t>(block.label.category)] += Bytes{block.requested};
  return sums;
}

std::string differences(const CategoryBytes& dry, const CategoryBytes& closed) {
  std::string text;
  for (std::size_t i = 0; i < dry.size(); ++i)
    if (dry[i] != closed[i])
      text += std::string(kCategoryNames[i]) + " " + std::to_string(dry[i].count()) + " in the dry run, " +
              std::to_string(closed[i].count()) + " in closed form; ";
  return text;
}

struct Place {
  std::int64_t world_size, rank;
};
constexpr Place kPlaces[] = {{1, 0}, {2, 0}, {2, 1}, {3, 0},  {3, 1},   {3, 2},
                             {8, 0}, {8, 4}, {8, 7}, {64, 0}, {64, 32}, {64, 63}};

/// Units by attention and MLP, which leave norms to the root, or to the layers.
std::vector<NamedPlan> plans_of_classes(Family family) {
  const std::string layer = class_name(family, "DecoderLayer"), attention = class_name(family, "Attention"),
                    mlp = class_name(family, "MLP");
  std::vector<NamedPlan> plans;
  for (const bool original : {true, false}) {
    const auto name = [&](const std::string& classes) {
      return "fsdp1 of " + classes + (original ? " with original parameters" : "");
    };
    Fsdp1 plan{.use_orig_params = original, .auto_wrap_policy = WrapPolicy::transformer_based_wrap};
    plan.transformer_cls_names_to_wrap = {attention, mlp};
    plans.push_back({name("attention and MLP"), plan});
    plan.transformer_cls_names_to_wrap = {attention};
    plans.push_back({name("attention"), plan});
    plan.transformer_cls_names_to_wrap = {layer, mlp};
    plans.push_back({name("layers and MLP"), plan});
    plan.cpu_offload = true;
    plans.push_back({name("layers and MLP on the host"), plan});
    plan.cpu_offload = false, plan.auto_wrap_policy.reset();
    plans.push_back({name("layers, MLP and what is trained"), plan});
  }
  plans.push_back({"fsdp2 of attention and MLP", Fsdp2{.transformer_cls_names_to_wrap = {{attention, mlp}}}});
  plans.push_back({"fsdp2 of layers and attention", Fsdp2{.transformer_cls_names_to_wrap = {{layer, attention}}}});
  return plans;
}

std::vector<NamedPlan> all_plans() {
  std::vector<NamedPlan> plans{{"fsdp2 resharded to a group", Fsdp2{.reshard_after_forward = 1}},
                               {"fsdp2 in a hybrid mesh", Fsdp2{.hybrid = true, .dp_shard_size = 2}},
                               {"fsdp2 offloaded", Fsdp2{.cpu_offload = true}},
                               {"fsdp2 beside a whole base", Fsdp2{.ignored_params = Fsdp2Ignored::base}},
                               {"fsdp2 beside a whole adapter", Fsdp2{.ignored_params = Fsdp2Ignored::adapter}},
                               {"fsdp2 with one unit", Fsdp2{.auto_wrap_policy = Fsdp2Wrap::no_wrap}},
                               {"fsdp2 with prefetch", Fsdp2{.forward_prefetch = 1, .backward_prefetch = 1}},
                               {"fsdp2 reduced in float32", Fsdp2{.mp_policy = {.reduce_dtype = PolicyDType::float32,
                                                                                .output_dtype = PolicyDType::none}}}};
  for (const auto name : kPlanNames) {
    const NamedPlan plan = *find_plan(name);
    plans.push_back(plan);
    if (name == "zero1") {
      Zero unfused = std::get<Zero>(plan.plan);
      unfused.data_types.grad_accum_dtype = ZeroDType::fp32;
      plans.push_back({"zero1 with gradients added up in float32", unfused});
      unfused.optimizer = {.type = ZeroOptimizerType::adamw, .params = {.torch_adam = true}};
      plans.push_back({"zero1 with gradients added up in float32, for torch's AdamW of one group", unfused});
      Zero own = std::get<Zero>(plan.plan);
      own.optimizer.type = ZeroOptimizerType::adamw;
      plans.push_back({"zero1 with DeepSpeed's own optimizer", own});
      own.optimizer.type = ZeroOptimizerType::lion;
      plans.push_back({"zero1 with DeepSpeed's Lion", own});
      own.optimizer = {.type = ZeroOptimizerType::sgd, .params = {.momentum = 0.9}};
      plans.push_back({"zero1 with torch's SGD of DeepSpeed's file", own});
      own.optimizer = {.type = ZeroOptimizerType::adagrad};
      plans.push_back({"zero1 with torch's Adagrad of DeepSpeed's file", own});
    }
    if (name == "zero3") {
      Zero cut = std::get<Zero>(plan.plan);
      cut.reduce_bucket_size = 1000, cut.sub_group_size = 700, cut.stage3_prefetch_bucket_size = 5000;
      cut.stage3_param_persistence_threshold = 80, cut.stage3_max_reuse_distance = 9000;
      plans.push_back({"zero3 in small pieces", cut});
      Zero own = cut;
      own.optimizer.type = ZeroOptimizerType::lion;
      plans.push_back({"zero3 in small pieces with DeepSpeed's Lion", own});
      Zero doubled = cut;
      doubled.zero_hpz_partition_size = 2;
      plans.push_back({"zero3 with second copies", doubled});
      cut.offload_param.device = cut.offload_optimizer.device = OffloadDevice::cpu;
      plans.push_back({"zero3 on the host", cut});
      continue;
    }
    if (const auto* fsdp1 = std::get_if<Fsdp1>(&plan.plan)) {
      Fsdp1 other = *fsdp1;
      other.use_orig_params = !other.use_orig_params;
      plans.push_back(
          {std::string(name) + (other.use_orig_params ? " with" : " without") + " original parameters", other});
      other.cpu_offload = true;
      plans.push_back({std::string(name) + ", offloaded", other});
      Fsdp1 one_unit = *fsdp1;
      one_unit.auto_wrap_policy = WrapPolicy::no_wrap;
      plans.push_back({std::string(name) + " in one unit", one_unit});
    }
  }
  return plans;
}

std::string describe(const JobSpec& job, const NamedPlan& plan, const Place& place) {
  std::string text = plan.name + ", rank " + std::to_string(place.rank) + " of " + std::to_string(place.world_size);
  text += ", family " + std::to_string(static_cast<int>(job.model.family)) + ", torch " + to_string(job.stack.torch) +
          ", accelerate " + to_string(job.stack.accelerate);
  return text;
}

enum class Stacks : std::uint8_t { all, in_turn };

/// Runs the job under every plan, at places that follow one another, on every stack or on the next one. Gives how many
/// plans ran.
class Grid {
 public:
  explicit Grid(Stacks stacks, std::vector<NamedPlan> plans = all_plans())
      : stacks_(stacks), plans_(std::move(plans)) {}

  int check(const JobSpec& job, const std::string& method) {
    int ran = 0;
    std::vector<StackVersions> stacks;
    for (const StackVersions& versions : versions_)
      if (StackProfile(versions).models.knows(job.model.family)) stacks.push_back(versions);
    ++calls_;  // plans are a multiple of the stacks, perhaps: each shall meet all of them
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (stacks_ == Stacks::in_turn)
        ran += runs(job, plans_[i], stacks[(i + calls_) % stacks.size()], method);
      else
        for (const StackVersions& versions : stacks) ran += runs(job, plans_[i], versions, method);
    }
    return ran;
  }

 private:
  bool runs(JobSpec job, const NamedPlan& plan, const StackVersions& versions, const std::string& method) {
    job.stack = versions;
    const Place place = kPlaces[places_++ % std::size(kPlaces)];
    job.cluster.world_size = place.world_size;
    const auto run = dry_run(job, plan.plan, place.rank);
    if (!run) return false;
    const std::string what = method + ": " + describe(job, plan, place);
    CAPTURE(what);
    CHECK(differences(held(*run), persistent_state(job, plan.plan, place.rank)) == "");
    CHECK(run->managed_state == managed_state(job, plan.plan, place.rank));
    const ParameterCounts counts = count_parameters(job);
    CHECK(run->elements.total == counts.total);
    CHECK(run->elements.trainable == counts.trainable);
    return true;
  }

  Stacks stacks_;
  std::vector<NamedPlan> plans_;
  std::vector<StackVersions> versions_ = sample_stacks();
  std::size_t places_ = 0, calls_ = 0;
};

}  // namespace

TEST_CASE("estimate/closed_form: equals the dry run to the byte, full fine-tuning") {
  Grid grid(Stacks::all);
  for (const Family family : kAllFamilies) {
    JobSpec job = small_job(small_model(family));
    CHECK(grid.check(job, "full") >= 20);
    job.training.bf16 = false;
    job.dtype = DType::float32;
    job.training.optimizer = named_optimizer("adamw_torch_fused");
    CHECK(grid.check(job, "full in float32") >= 20);
  }
}

TEST_CASE("estimate/closed_form: equals the dry run to the byte, LoRA") {
  Grid grid(Stacks::in_turn);
  for (const Family family : kAllFamilies) {
    JobSpec job = small_lora_job(small_model(family));
    CHECK(grid.check(job, "LoRA") >= 5);
    job.adapter->dtype = DType::bfloat16;
    job.training.optimizer = named_optimizer("adamw_torch_fused");
    CHECK(grid.check(job, "LoRA in bfloat16, fused") >= 5);
  }
}

TEST_CASE("estimate/closed_form: equals the dry run to the byte, units of other classes than the layer") {
  for (const Family family : kAllFamilies) {
    Grid grid(Stacks::all, plans_of_classes(family));
    JobSpec job = small_job(small_model(family));
    CHECK(grid.check(job, "full") >= 12);
    job.training.optimizer = named_optimizer("adamw_8bit");
    CHECK(grid.check(job, "full, in 8 bits") >= 12);
    job = small_lora_job(small_model(family));
    CHECK(grid.check(job, "LoRA") >= 5);
    CHECK(grid.check(small_qlora_job(small_model(family)), "QLoRA") >= 2);
  }
}

TEST_CASE("estimate/closed_form: equals the dry run to the byte, QLoRA") {
  Grid grid(Stacks::in_turn);
  for (const Family family : kAllFamilies)
    for (const DType storage : {DType::uint8, DType::bfloat16})
      for (const bool double_quant : {false, true}) {
        JobSpec job = small_qlora_job(small_model(family), storage, double_quant);
        CHECK(grid.check(job, "QLoRA") >= 2);
        job.quantization->prepare_kbit = true;
        CHECK(grid.check(job, "QLoRA prepared for k-bit") >= 2);
      }
}

TEST_CASE("estimate/closed_form: equals the dry run to the byte, mixtures of experts") {
  Grid grid(Stacks::all);
  for (const Family family : kMixtures) {
    JobSpec job = small_job(small_model(family));
    CHECK(grid.check(job, "full") >= 4);
    job.adapter = AdapterSpec{.r = 3, .target_modules = {"q_proj", "o_proj"}};
    CHECK(grid.check(job, "LoRA on attention") >= 4);
    job.adapter = small_lora();
    CHECK(grid.check(job, "LoRA on everything") >= 2);
    job.quantization = QuantizationSpec{.double_quant = true};
    CHECK(grid.check(job, "QLoRA") >= 1);
  }
}

TEST_CASE("estimate/closed_form: equals the dry run to the byte, options one by one") {
  Grid grid(Stacks::in_turn);
  ModelSpec biased = small_model(Family::llama);
  biased.qkv_bias = biased.attention_bias = biased.mlp_bias = true;
  JobSpec lora = small_lora_job(small_model(Family::llama));
  JobSpec qlora = small_qlora_job(biased);
  SUBCASE("biases") {
    CHECK(grid.check(qlora, "biases") > 0);
    qlora.quantization->prepare_kbit = true;
    CHECK(grid.check(qlora, "biases in float32") > 0);
    qlora.training.bf16 = false;
    CHECK(grid.check(qlora, "biases in float32 without autocast") > 0);
  }
  SUBCASE("8-bit weights") {
    for (const Family family : kAllFamilies) {
      JobSpec int8 = small_lora_job(small_model(family));
      int8.quantization = QuantizationSpec{.quant_type = QuantType::int8, .quant_storage = DType::int8};
      CHECK(grid.check(int8, "int8") > 0);
      int8.quantization->prepare_kbit = true;
      CHECK(grid.check(int8, "int8, prepared") > 0);
    }
  }
  SUBCASE("SGD keeps nothing, and no clipping no zero") {
    lora.training.optimizer = named_optimizer("sgd");
    lora.training.max_grad_norm = 0;
    CHECK(grid.check(lora, "sgd") > 0);
  }
  SUBCASE("every optimizer") {
    JobSpec full = small_job(small_model(Family::gemma2));
    JobSpec saved = small_lora_job(small_model(Family::qwen3));
    saved.adapter->modules_to_save = {"embed_tokens"};
    Grid every_stack(Stacks::all);
    for (const OptimizerName& row : kOptimizerNames) {
      const std::string name(row.name);
      for (JobSpec* job : {&full, &lora, &qlora, &saved}) {
        job->training.optimizer = named_optimizer(name);
        job->training.optim_targets.reset();
        if (std::holds_alternative<Apollo>(row.kind) || std::holds_alternative<GaLore>(row.kind))
          job->training.optim_targets = {.modules = {"self_attn", "lm_head"}};
      }
      const bool matrices_only = std::holds_alternative<Muon>(row.kind);
      Grid& stacks = matrices_only ? every_stack : grid;  // it runs on few
      // Muon trains no vectors, but for plans where DeepSpeed's own optimizer takes its place.
      CHECK(stacks.check(full, name + ", full") > 0);
      CHECK(stacks.check(lora, name + ", LoRA") + stacks.check(qlora, name + ", QLoRA") +
                stacks.check(saved, name + ", a trained embedding") >
            0);
      full.dtype = DType::float32;
      CHECK(grid.check(full, name + ", full in float32") > 0);
      full.dtype = DType::bfloat16;
    }
  }
  SUBCASE("accumulation and checkpointing") {
    lora.training.gradient_accumulation_steps = 2;
    lora.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
    CHECK(grid.check(lora, "accumulation") > 0);
    lora.training.gradient_checkpointing = GradientCheckpointing::reentrant;
    CHECK(grid.check(lora, "reentrant") > 0);
    JobSpec full = small_job(small_model(Family::qwen3));
    full.training.gradient_accumulation_steps = 3;
    CHECK(grid.check(full, "accumulation, full") > 0);
  }
  SUBCASE("DoRA") {
    lora.adapter->use_dora = true;
    CHECK(grid.check(lora, "dora") > 0);
    qlora.adapter->use_dora = true;
    CHECK(grid.check(qlora, "dora beside 4 bit") > 0);
    lora.adapter->autocast_adapter_dtype = qlora.adapter->autocast_adapter_dtype = false;
    CHECK(grid.check(lora, "dora in 16 bit") > 0);
    CHECK(grid.check(qlora, "dora in 16 bit beside 4 bit") > 0);
  }
  SUBCASE("DoRA without mixed precision, where FSDP1 runs it") {
    lora.adapter->use_dora = true;
    lora.training.bf16 = false;
    CHECK(grid.check(lora, "dora") > 0);
  }
  SUBCASE("float16") {
    for (JobSpec job : {small_job(small_model(Family::llama)), lora, qlora}) {
      job.training.bf16 = false, job.training.fp16 = true;
      CHECK(grid.check(job, "float16 mixed precision") > 0);
      job.dtype = DType::float16;
      if (job.quantization) job.quantization->compute_dtype = job.quantization->quant_storage = DType::float16;
      if (job.adapter) CHECK(grid.check(job, "float16") > 0);
    }
  }
  SUBCASE("tables that TRL casts back") {
    qlora.quantization->prepare_kbit = qlora.quantization->trl_bf16_cast = true;
    CHECK(grid.check(qlora, "tables in bfloat16") > 0);
    qlora.adapter->modules_to_save = {"lm_head"};
    CHECK(grid.check(qlora, "a trained copy of one") > 0);
  }
  SUBCASE("some modules, with ranks of their own, and some trained as copies") {
    lora.adapter->all_linear = false;
    lora.adapter->target_modules = {"q_proj", "down_proj", "lm_head"};
    lora.adapter->rank_pattern = {{"layers.1.self_attn.q_proj", 3}, {"down_proj", 7}};
    CHECK(grid.check(lora, "targets") > 0);
    lora.adapter->target_modules = {"q_proj"};
    lora.adapter->modules_to_save = {"lm_head", "embed_tokens"};
    CHECK(grid.check(lora, "modules_to_save") > 0);
    lora.model.tie_word_embeddings = true;
    lora.adapter->modules_to_save = {"embed_tokens"};
    CHECK(grid.check(lora, "modules_to_save of a tied table") > 0);
    qlora.adapter->modules_to_save = {"lm_head"};
    CHECK(grid.check(qlora, "modules_to_save beside 4 bit") > 0);
    qlora.adapter->modules_to_save = {"norm"};
    CHECK(grid.check(qlora, "copies of norms beside 4 bit") > 0);
    for (const Family family : {Family::llama, Family::qwen3, Family::gemma2}) {
      lora.model = small_model(family);
      lora.adapter->modules_to_save = {"norm", "embed_tokens"};
      CHECK(grid.check(lora, "copies of all norms") > 0);
    }
  }
  SUBCASE("trained biases") {
    lora.model = small_model(Family::qwen2), qlora.model = lora.model;
    for (AdapterSpec* adapter : {&*lora.adapter, &*qlora.adapter})
      adapter->all_linear = false, adapter->target_modules = {"q_proj", "up_proj"};
    for (const AdapterBias bias : {AdapterBias::all, AdapterBias::lora_only}) {
      lora.adapter->bias = qlora.adapter->bias = bias;
      CHECK(grid.check(lora, "biases of the base") > 0);
      CHECK(grid.check(qlora, "biases of the base beside 4 bit") > 0);
    }
    lora.adapter->bias = AdapterBias::none, lora.adapter->lora_bias = true;
    CHECK(grid.check(lora, "biases of the adapter") > 0);
  }
  SUBCASE("beside the embedding") {
    lora.adapter->all_linear = false;
    lora.adapter->target_modules = {"q_proj", "embed_tokens"};
    CHECK(grid.check(lora, "an adapter on the embedding") > 0);
    lora.adapter->target_modules = {"q_proj"};
    lora.adapter->trainable_token_indices = {3, 130};
    CHECK(grid.check(lora, "single tokens") > 0);
    lora.model.tie_word_embeddings = true;
    CHECK(grid.check(lora, "single tokens of a tied table") > 0);
    lora.adapter->autocast_adapter_dtype = false;
    CHECK(grid.check(lora, "single tokens in 16 bits") > 0);
  }
  SUBCASE("adapters that are not cast to float32") {
    lora.adapter->autocast_adapter_dtype = false;
    CHECK(grid.check(lora, "16-bit adapters") > 0);
    qlora.adapter->autocast_adapter_dtype = false;
    CHECK(grid.check(qlora, "16-bit adapters beside 4 bit") > 0);
    qlora.quantization->quant_storage = DType::uint8;
    CHECK(grid.check(qlora, "16-bit adapters beside 4 bit in integers") > 0);
  }
  SUBCASE("longrope on a part of each head") {
    lora.model = small_model(Family::phi3);
    lora.model.rope = RopeKind::longrope;
    lora.model.partial_rotary_factor = 0.5;
    CHECK(grid.check(lora, "longrope") > 0);
    lora.stack = kOlder;
    CHECK(grid.check(lora, "longrope that takes the place of a cast buffer") > 0);
  }
  SUBCASE("weights that arrive in host memory or through rank 0") {
    for (JobSpec job : {small_job(small_model(Family::gemma2)), lora, qlora})
      for (const Loading loading : {Loading::cpu, Loading::rank0}) {
        job.loading = loading;
        CHECK(grid.check(job, "loading") > 0);
      }
  }
  SUBCASE("Hopper's workspaces") {
    lora.cluster.gpu.compute_capability = 90;
    CHECK(grid.check(lora, "sm_90") > 0);
    lora.cluster.gpu.compute_capability = 100;
    CHECK(grid.check(lora, "sm_100") > 0);
  }
}

TEST_CASE("estimate/closed_form: what ranks hold that share experts, or parts of each, equals the dry run") {
  struct Case {
    Mesh mesh;
    std::int64_t world_size;
    ShardingPlan plan;
  };
  const Fsdp2 hybrid{.hybrid = true, .dp_shard_size = 3};
  const Case cases[] = {{{.tp = 2}, 2, Single{}},         {{.tp = 2, .ep = 2}, 2, Single{}},
                        {{.tp = 2}, 6, Fsdp2{}},          {{.ep = 3}, 3, Fsdp2{}},
                        {{.ep = 2}, 8, Fsdp2{}},          {{.tp = 2, .ep = 6}, 6, Fsdp2{}},
                        {{.tp = 2, .ep = 2}, 6, Fsdp2{}}, {{.tp = 2, .ep = 2}, 12, hybrid}};
  for (const Family family : kSharedMixtures)
    for (const Case& place : cases)
      for (std::int64_t rank = 0; rank < place.world_size; ++rank) {
        JobSpec job = small_job(small_model(family));
        job.model.vocab_size = 132;
        job.cluster.mesh = place.mesh, job.cluster.world_size = place.world_size;
        const auto run = dry_run(job, place.plan, rank);
        CAPTURE(describe(job, {"mesh", place.plan}, {place.world_size, rank}));
        CAPTURE(place.mesh.ep);
        REQUIRE(run);
        CHECK(differences(held(*run), persistent_state(job, place.plan, rank)) == "");
      }
}

TEST_CASE("estimate/closed_form: the textbook ledger") {
  constexpr LedgerEntry kTrained{.weights = 1000, .moments = 2};
  constexpr LedgerEntry kFrozen4bit{.weights = 1000, .bits = 4};
  constexpr LedgerEntry kLora{.weights = 10, .sharded = true};
  LedgerEntry sharded = kTrained;
  sharded.sharded = true;
  CHECK(ledger_units(std::vector{sharded}, 4) == 750);
  CHECK(ledger_units(std::vector{kTrained}, 4) == 3000);
  CHECK(ledger_units(std::vector{sharded, kLora}, 4) == 752.5);
  CHECK(ledger_units(std::vector{kFrozen4bit, kLora}, 4) == 252.5);
}

TEST_CASE("estimate/closed_form: what ranks of a mesh hold equals the dry run") {
  struct Case {
    Mesh mesh;
    std::int64_t world_size;
    ShardingPlan plan;
  };
  const Case cases[] = {{{.tp = 2}, 2, Single{}}, {{.tp = 2}, 4, Fsdp2{}},
                        {{.tp = 2}, 10, Fsdp2{}}, {{.tp = 2}, 8, Fsdp2{.hybrid = true, .dp_shard_size = 2}},
                        {{.pp = 3}, 3, Single{}}, {{.tp = 2, .pp = 2}, 4, Single{}},
                        {{.pp = 3}, 6, Ddp{}},    {{.pp = 3}, 6, Fsdp2{}}};
  for (const Family family : {Family::llama, Family::qwen2, Family::qwen3})
    for (const bool adapted : {false, true})
      for (const Case& place : cases)
        for (std::int64_t rank = 0; rank < place.world_size; ++rank) {
          JobSpec job = small_job(small_model(family));
          job.model.vocab_size = 132, job.model.num_hidden_layers = 3;
          const bool biased = family == Family::llama;
          job.model.qkv_bias = job.model.qkv_bias || biased;
          job.model.attention_bias = job.model.mlp_bias = biased;
          job.training.gradient_accumulation_steps = 3;
          job.cluster.mesh = place.mesh, job.cluster.world_size = place.world_size;
          if (adapted) job.adapter = AdapterSpec{.r = 4, .target_modules = {"q_proj", "up_proj"}};
          const auto run = dry_run(job, place.plan, rank);
          CHECK(run.has_value() == !(adapted && place.mesh.tp > 1 && std::holds_alternative<Fsdp2>(place.plan)));
          if (!run) continue;
          CAPTURE(describe(job, {"mesh", place.plan}, {place.world_size, rank}));
          CAPTURE(place.mesh.pp);
          CHECK(differences(held(*run), persistent_state(job, place.plan, rank)) == "");
        }
}

TEST_CASE("estimate/closed_form: parameters of Llama 2 7B with adapters, by formulas and in the module tree") {
  ModelSpec llama;
  llama.hidden_size = 4096, llama.intermediate_size = 11008, llama.num_hidden_layers = 32, llama.vocab_size = 32000;
  llama.num_attention_heads = llama.num_key_value_heads = 32, llama.head_dim = 128;
  JobSpec job = small_job(llama);
  job.adapter = AdapterSpec{.r = 8, .target_modules = {"q_proj", "v_proj"}};
  const auto in_tree = [&] {
    BuildOptions options;
    options.adapter = job.adapter;
    return count_elements(**build_model(llama, options));
  };
  CHECK(count_parameters(job).trainable == 4'194'304);
  CHECK(count_parameters(job).total == 6'742'609'920);
  CHECK(count_parameters(job).total == parameter_count(llama) + count_parameters(job).trainable);
  CHECK(in_tree().trainable == 4'194'304);
  CHECK(in_tree().total == 6'742'609'920);
  job.adapter = AdapterSpec{.r = 8, .all_linear = true};
  CHECK(count_parameters(job).trainable == 19'988'480);
  CHECK(count_parameters(job).total == parameter_count(llama) + 19'988'480);
  CHECK(in_tree().trainable == 19'988'480);
}

// Rajbhandari et al. 2020 ("ZeRO: Memory Optimizations Toward Training Trillion Parameter Models"), table 1: GB of
// model states for 7.5 billion parameters, whose gradients (2 bytes each, here gone after the step) are taken off.
TEST_CASE("estimate/closed_form: ZeRO keeps what its paper says, to the last digit of its table") {
  struct Row {
    std::int64_t ranks;
    double of_stage[3];  ///< GB
  };
  constexpr Row kTable[] = {{4, {52.5, 41.3, 30}},
                            {16, {35.6, 21.6, 7.5}},
                            {64, {31.4, 16.6, 1.88}},
                            {256, {30.4, 15.4, 0.47}},
                            {1024, {30.1, 15.1, 0.12}}};
  constexpr double kBillions = 7.5, kGradients = 2 * kBillions;
  for (const Row& row : kTable)
    for (int stage = 1; stage <= 3; ++stage) {
      JobSpec job = small_job(llama_1b(16));
      job.training.optimizer = named_optimizer("adamw_torch");
      job.cluster.world_size = row.ranks;
      const CategoryBytes held = persistent_state(job, Zero{.stage = stage}, 0);
      const Bytes states = held[static_cast<std::size_t>(Category::parameters)] +
                           held[static_cast<std::size_t>(Category::optimizer_state)];
      const double per_parameter =
          static_cast<double>(states.count()) / static_cast<double>(count_parameters(job).total);
      const double gradients = stage == 1 ? kGradients : kGradients / static_cast<double>(row.ranks);
      CAPTURE(stage);
      CAPTURE(row.ranks);
      CHECK(std::abs(kBillions * per_parameter - (row.of_stage[stage - 1] - gradients)) <= 0.05);
    }
}

}  // namespace qlp
