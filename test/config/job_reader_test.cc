#include "config/job_reader.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "config/job_writer.h"
#include "config/memory_files.h"
#include "memory/allocator_config.h"
#include "plan/catalogue.h"

using namespace qlp;
using qlp::test::MemoryFiles;

namespace {

/// A job that says only what it must, with `more` at its end.
std::string minimal(const std::string& more = "") {
  return "schema: 1\nmodel: {name: llama-3.1-8b}\ntraining: {seq_len: 2048}\ncluster: {gpu: A100 SXM4 80GB}\n" + more;
}

JobDocument read(const std::string& text, const MemoryFiles& files = MemoryFiles()) {
  auto document = read_job(text, "jobs/a.yaml", files);
  if (!document)
    for (const auto& e : document.error()) MESSAGE(e.key_path << ": " << e.message);
  REQUIRE(document);
  return *document;
}

JobSpec job(const std::string& text) { return read(text).job; }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

const Diagnostic* find_note(const Diagnostics& notes, std::string_view code, std::string_view path) {
  const auto it = std::find_if(notes.begin(), notes.end(),
                               [&](const Diagnostic& d) { return d.code == code && d.key_path == path; });
  return it == notes.end() ? nullptr : &*it;
}

}  // namespace

TEST_CASE("config/job_reader: a short job has every default, and each is told") {
  const auto document = read(minimal());
  const auto& j = document.job;
  CHECK(j.model.name == "llama-3.1-8b");
  CHECK(j.dtype == DType::bfloat16);
  CHECK(j.loading == Loading::automatic);
  CHECK_FALSE(j.quantization);
  CHECK_FALSE(j.adapter);
  CHECK(j.training == TrainingSpec{.seq_len = 2048, .optimizer = named_optimizer("adamw_torch_fused")});
  CHECK(j.cluster.gpu.name == "A100 SXM4 80GB");
  CHECK(j.cluster.world_size == 1);
  CHECK(j.cluster.margin == 0.02);
  CHECK(j.allocator_text.empty());
  CHECK(j.stack == StackVersions{});
  REQUIRE(j.plans.size() == kPlanNames.size());
  for (std::size_t i = 0; i < kPlanNames.size(); ++i) CHECK(j.plans[i].name == kPlanNames[i]);

  for (auto path : {"model.dtype",
                    "model.loading",
                    "quantization",
                    "adapter",
                    "training.micro_batch_size",
                    "training.gradient_accumulation_steps",
                    "training.gradient_checkpointing",
                    "training.mixed_precision",
                    "training.tf32",
                    "training.optimizer",
                    "training.max_grad_norm",
                    "training.attn_implementation",
                    "training.loss",
                    "training.num_steps",
                    "cluster.world_size",
                    "cluster.gpus_per_node",
                    "cluster.used_by_others",
                    "cluster.host_memory",
                    "cluster.margin",
                    "allocator",
                    "plans",
                    "stack.torch",
                    "stack.transformers",
                    "stack.peft",
                    "stack.accelerate",
                    "stack.bitsandbytes"}) {
    CAPTURE(path);
    const auto* note = find_note(document.notes, "default-used", path);
    REQUIRE(note);
    CHECK(note->severity == Severity::note);
    CHECK(note->position.file == "jobs/a.yaml");
  }
  CHECK(find_note(document.notes, "default-used", "training.optimizer")->message == "not given: adamw_torch_fused");
  CHECK_FALSE(find_note(document.notes, "default-used", "training.seq_len"));
}

TEST_CASE("config/job_reader: the reference file says every default as it is") {
  const auto reference = read_job_file("configs/reference.yaml");
  REQUIRE(reference);
  REQUIRE(reference->notes.size() == 2);  // those that have no word for their default
  CHECK(find_note(reference->notes, "default-used", "allocator"));
  CHECK(find_note(reference->notes, "default-used", "cluster.host_memory"));
  const auto short_form =
      job("schema: 1\n"
          "model: {name: example, family: llama, hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32,\n"
          "  num_attention_heads: 32, vocab_size: 128256}\n"
          "quantization: {}\nadapter: {}\ntraining: {seq_len: 2048}\ncluster: {gpu: A100 SXM4 80GB}\n");
  CHECK(short_form == reference->job);
}

TEST_CASE("config/job_reader: every shipped job is read, and without a warning") {
  const DiskFiles files;
  int jobs = 0;
  for (const auto& name : files.list("configs")) {
    if (!name.ends_with(".yaml")) continue;
    CAPTURE(name);
    const auto document = read_job_file("configs/" + name);
    REQUIRE(document);
    for (const auto& d : document->notes) CHECK(d.severity == Severity::note);
    ++jobs;
  }
  CHECK(jobs >= 6);
}

TEST_CASE("config/job_reader: all of a QLoRA job") {
  const auto document = read_job_file("configs/llama-3.1-8b-qlora.yaml");
  REQUIRE(document);
  const auto& j = document->job;
  CHECK(j.loading == Loading::automatic);
  CHECK(j.quantization == QuantizationSpec{.double_quant = true, .quant_storage = DType::bfloat16});
  REQUIRE(j.adapter);
  CHECK(j.adapter->r == 16);
  CHECK(j.adapter->lora_alpha == 32);
  CHECK(j.adapter->lora_dropout == 0.05);
  CHECK(j.adapter->all_linear);
  CHECK(j.adapter->target_modules.empty());
  CHECK(j.adapter->dtype == DType::bfloat16);
  CHECK(j.training.gradient_checkpointing == GradientCheckpointing::nonreentrant);
  CHECK(j.training.bf16);
  CHECK(j.training.optimizer.name == "adamw_torch");
  CHECK(j.cluster.world_size == 8);
  CHECK(j.cluster.gpu.compute_capability == 90);
}

TEST_CASE("config/job_reader: evaluation and saving, by the names of their owners") {
  const auto with = [](const std::string& more) {
    return job(replaced(minimal(""), "seq_len: 2048", "seq_len: 2048, " + more)).training;
  };
  CHECK_FALSE(with("num_steps: 1").evaluation);
  CHECK_FALSE(with("num_steps: 1").saves_model);
  CHECK(with("evaluation: {}").evaluation == EvaluationSpec{});
  CHECK(with("evaluation: {prediction_loss_only: false, num_samples: 9, eval_accumulation_steps: 3}").evaluation ==
        EvaluationSpec{.prediction_loss_only = false, .num_samples = 9, .eval_accumulation_steps = 3});
  CHECK(with("save: {}").saves_model);
  CHECK(with("save: {state_dict_type: FULL_STATE_DICT}").saves_model);
  CHECK_FALSE(with("num_steps: 1").checkpoint);
  CHECK(with("checkpoint: {}").checkpoint == StateDictType::automatic);
  CHECK(with("checkpoint: {state_dict_type: SHARDED_STATE_DICT}").checkpoint == StateDictType::sharded);
}

TEST_CASE("config/job_reader: defaults that follow a version") {
  const auto with = [](const std::string& stack) {
    return job(
        replaced(minimal("stack: {" + stack + "}\n"), "seq_len: 2048", "seq_len: 2048, gradient_checkpointing: true"));
  };
  CHECK(with("torch: 2.7.1").training.optimizer.name == "adamw_torch");
  CHECK(with("torch: 2.8.0+cu128").training.optimizer.name == "adamw_torch_fused");
  CHECK(with("torch: 2.10").stack.torch == Version{2, 10, 0});
  CHECK(with("transformers: 4.57.1").training.gradient_checkpointing == GradientCheckpointing::reentrant);
  CHECK(with("transformers: 5.0.0").training.gradient_checkpointing == GradientCheckpointing::nonreentrant);
}

TEST_CASE("config/job_reader: a release that nobody has checked is planned as the newest that was, and said so") {
  const auto warned = [](const std::string& stack) {
    return find_note(read(minimal("stack: {" + stack + "}\n")).notes, "newer-than-known", "stack.torch") != nullptr;
  };
  CHECK(warned("torch: 2.99.0"));
  CHECK(warned("torch: 3.0"));
  CHECK_FALSE(warned("torch: " + to_string(StackVersions{}.torch)));
  CHECK_FALSE(warned("torch: 2.8.0"));
  CHECK_FALSE(read_job(minimal("stack: {torch: 99999999999999999999.1}\n"), "job.yaml", DiskFiles()));
}

TEST_CASE("config/job_reader: words of other tools lead to ours") {
  const auto hint = [](const std::string& more) {
    const auto read = read_job(minimal(more + "\n"), "job.yaml", DiskFiles());
    return read ? "" : read.error().front().hint;
  };
  CHECK(hint("quantization: {load_in_4bit: true}\nadapter: {}") == "did you mean quant_type?");
  CHECK(hint("quantization: {compute_dtype: bf16}\nadapter: {}") == "did you mean bfloat16?");
  CHECK(hint("adapter: {lora_rank: 8}") == "did you mean r?");
  CHECK(hint("adapter: {rank_pattern: {'(': 8, '': 3}}").empty());
}

TEST_CASE("config/job_reader: a model that is no map, or goes by its name on the Hub, leads to how it is written") {
  const auto hint = [](const std::string& model) {
    const auto read = read_job("schema: 1\nmodel: " + model + "\n", "job.yaml", DiskFiles());
    REQUIRE_FALSE(read);
    const auto of_model = [](const Diagnostic& error) { return error.key_path.starts_with("model"); };
    const auto found = std::ranges::find_if(read.error(), of_model);
    REQUIRE(found != read.error().end());
    return found->hint;
  };
  CHECK(hint("llama-3.1-8b") == "write {name: llama-3.1-8b}");
  CHECK(hint("meta-llama/Llama-3.1-8B-Instruct") == "write {name: llama-3.1-8b}");
  CHECK(hint("./config.json") == "write {config: FILE}");
  CHECK(hint("some/model").find("qlora-plan models") != std::string::npos);
  CHECK(hint("{name: meta-llama/Llama-3.1-8B-Instruct}") == "did you mean llama-3.1-8b?");
  CHECK(hint("{name: some/model}") == "give its config.json: --model FILE");
}

TEST_CASE("config/job_reader: precision and checkpointing in their spellings") {
  const auto with = [](const std::string& more) { return job(replaced(minimal(), "2048}", "2048, " + more + "}")); };
  CHECK(with("mixed_precision: bf16").training.bf16);
  CHECK_FALSE(with("mixed_precision: \"no\"").training.bf16);
  CHECK_FALSE(with("mixed_precision: no").training.bf16);
  CHECK_FALSE(with("mixed_precision: no").training.mixed_precision());
  CHECK(with("mixed_precision: fp16").training.fp16);
  CHECK(with("mixed_precision: fp16").training.autocast_dtype() == DType::float16);
  CHECK(with("gradient_checkpointing: false").training.gradient_checkpointing == GradientCheckpointing::none);
  CHECK(with("gradient_checkpointing: {use_reentrant: true}").training.gradient_checkpointing ==
        GradientCheckpointing::reentrant);
  CHECK(with("max_grad_norm: 0").training.max_grad_norm == 0);
  CHECK(with("num_steps: 2").training.num_steps == 2);
}

TEST_CASE("config/job_reader: targets as PEFT takes them") {
  const auto adapter = [](const std::string& text) { return *job(minimal("adapter: {" + text + "}\n")).adapter; };
  CHECK(adapter("r: 4").target_modules == std::vector<std::string>{"q_proj", "v_proj"});
  CHECK(adapter("target_modules: ALL-LINEAR").all_linear);
  CHECK(adapter("target_modules: [o_proj]").target_modules == std::vector<std::string>{"o_proj"});
  const auto pattern = adapter("target_modules: '.*\\.(q|v)_proj'");
  CHECK(pattern.target_pattern == ".*\\.(q|v)_proj");
  CHECK(pattern.target_modules.empty());
  CHECK_FALSE(pattern.all_linear);
  using Ranks = std::vector<std::pair<std::string, std::int64_t>>;
  CHECK(adapter("rank_pattern: {q_proj: 32}, modules_to_save: [lm_head]").rank_pattern == Ranks{{"q_proj", 32}});
  CHECK(adapter("rank_pattern: {v_proj: 2, a_proj: 1}").rank_pattern == Ranks{{"v_proj", 2}, {"a_proj", 1}});
  CHECK(adapter("alpha_pattern: {q_proj: 0.5}").alpha_pattern.front().second == 0.5);
}

TEST_CASE("config/job_reader: what APOLLO projects, and how") {
  const auto training = [](const std::string& text) {
    return job(replaced(minimal(), "seq_len: 2048", "seq_len: 2048, " + text)).training;
  };
  const auto apollo = training("optimizer: apollo_adamw, optim_target_modules: [attn, mlp], optim_args: {rank: 7}");
  CHECK(apollo.optimizer.kind == OptimizerKind(Apollo{.low_rank = {.rank = 7}}));
  CHECK(apollo.optim_targets->modules.size() == 2);
  const auto text = training(
      "optimizer: apollo_adamw_layerwise, optim_target_modules: all-linear, "
      "optim_args: 'scale_type=tensor, proj_type=left, update_proj_gap=5'");
  CHECK(text.optimizer.kind ==
        OptimizerKind(Apollo{.scale_type = Apollo::Scale::tensor,
                             .low_rank = {.proj_type = ProjectionSide::left, .update_proj_gap = 5},
                             .layerwise = true}));
  CHECK(text.optim_targets->all_linear);
  const auto code = [](const std::string& more) {
    const auto read =
        read_job(replaced(minimal(), "seq_len: 2048", "seq_len: 2048, " + more), "job.yaml", MemoryFiles());
    return read ? "" : read.error().front().code;
  };
  CHECK(code("optimizer: apollo_adamw") == "missing-key");
  CHECK(code("optimizer: apollo_adamw, optim_target_modules: [attn], optim_args: {proj: svf}") == "bad-value");
  CHECK(code("optimizer: apollo_adamw, optim_target_modules: [attn], optim_args: {proj: svd}").empty());
  for (const std::string proj : {"svd", "random"})
    CHECK(code("optimizer: apollo_adamw, optim_target_modules: [attn], optim_args: {proj: " + proj +
               ", proj_type: full}") == "not-supported");
  CHECK(code("optimizer: apollo_adamw, optim_target_modules: [attn], optim_args: 'rnk=4'") == "unknown-key");
  CHECK(code("optimizer: sgd, optim_args: 'a=1'") == "not-supported");
}

TEST_CASE("config/job_reader: what GaLore projects, and how") {
  const auto training = [](const std::string& text) {
    return job(replaced(minimal(), "seq_len: 2048", "seq_len: 2048, " + text)).training;
  };
  const auto galore = training(
      "optimizer: galore_adafactor, optim_target_modules: [attn], optim_args: 'rank=7, update_proj_gap=9, scale=2, "
      "proj_type=full'");
  CHECK(galore.optimizer.kind ==
        OptimizerKind(
            GaLore{.base = GaLore::Base::adafactor,
                   .low_rank = {.rank = 7, .proj_type = ProjectionSide::full, .update_proj_gap = 9, .scale = 2}}));
  CHECK(galore.optim_targets->modules.size() == 1);
}

TEST_CASE("config/job_reader: what limits an adapter, and what is trained beside it") {
  const auto adapter = [](const std::string& text) { return *job(minimal("adapter: {" + text + "}\n")).adapter; };
  CHECK(adapter("exclude_modules: [o_proj]").exclude_modules == std::vector<std::string>{"o_proj"});
  CHECK(adapter("exclude_modules: '.*o_proj'").exclude_pattern == ".*o_proj");
  CHECK(adapter("layers_to_transform: 1").layers_to_transform == std::vector<std::int64_t>{1});
  const auto layers = adapter("layers_to_transform: [0, 1], layers_pattern: layers");
  CHECK(layers.layers_to_transform == std::vector<std::int64_t>{0, 1});
  CHECK(layers.layers_pattern == std::vector<std::string>{"layers"});
  CHECK(adapter("bias: lora_only").bias == AdapterBias::lora_only);
  CHECK(adapter("lora_bias: true").lora_bias);
  CHECK(adapter("trainable_token_indices: [5, 7]").trainable_token_indices == std::vector<std::int64_t>{5, 7});
  CHECK(adapter("trainable_token_indices: {embed_tokens: [5]}").trainable_token_indices ==
        std::vector<std::int64_t>{5});
  CHECK(adapter("target_parameters: [experts.down_proj]").target_parameters.size() == 1);
  CHECK(adapter("init_lora_weights: gaussian") == adapter("r: 8"));
  const auto code = [](const std::string& text) {
    const auto read = read_job(minimal("adapter: {" + text + "}\n"), "job.yaml", MemoryFiles());
    return read ? "" : read.error().front().code;
  };
  CHECK(code("target_modules: all-linear, layers_to_transform: [1]") == "bad-value");
  CHECK(code("layers_pattern: layers") == "bad-value");
  CHECK(code("lora_bias: true, use_dora: true") == "bad-value");
  CHECK(code("init_lora_weights: pissa") == "not-supported");
  CHECK(code("init_lora_weights: pissa_niter_4") == "not-supported");
  CHECK(code("trainable_token_indices: {lm_head: [5]}") == "not-supported");
  CHECK(code("layers_to_transform: [1, 1]") == "duplicate-item");
  CHECK(code("layers_to_transform: [-1]") == "out-of-range");
}

TEST_CASE("config/job_reader: the class of the decoder layers is what is wrapped anyway") {
  const auto classes = [](const std::string& named) {
    const JobSpec spec = job(minimal("plans: {fsdp2: {transformer_cls_names_to_wrap: " + named + "}}\n"));
    return std::get<Fsdp2>(spec.plans.front().plan).transformer_cls_names_to_wrap;
  };
  CHECK_FALSE(classes("LlamaDecoderLayer"));
  CHECK(classes("[LlamaMLP]") == std::vector<std::string>{"LlamaMLP"});
  CHECK(classes("[LlamaDecoderLayer, LlamaMLP]"));
}

TEST_CASE("config/job_reader: options of fsdp2 plans") {
  const auto plan = [](const std::string& text) {
    return std::get<Fsdp2>(job(minimal("plans: {" + text + "}\n")).plans.front().plan);
  };
  CHECK(plan("fsdp2: {reshard_after_forward: 4}") == Fsdp2{.reshard_after_forward = 4});
  CHECK(plan("fsdp2: {cpu_offload: true, pin_memory: false}") == Fsdp2{.cpu_offload = true, .pin_memory = false});
  CHECK(plan("fsdp2: {forward_prefetch: 2, backward_prefetch: 1}") ==
        Fsdp2{.forward_prefetch = 2, .backward_prefetch = 1});
  CHECK(plan("fsdp2: {mp_policy: {param_dtype: bfloat16, reduce_dtype: auto, output_dtype: none}}") ==
        Fsdp2{.mp_policy = {.param_dtype = PolicyDType::bfloat16, .output_dtype = PolicyDType::none}});
  CHECK(plan("fsdp2: {mp_policy: {cast_forward_inputs: false}}") == Fsdp2{.mp_policy = {.cast_forward_inputs = false}});
  CHECK(plan("fsdp2: {ignored_params: base, auto_wrap_policy: no_wrap}") ==
        Fsdp2{.ignored_params = Fsdp2Ignored::base, .auto_wrap_policy = Fsdp2Wrap::no_wrap});
  CHECK(plan("fsdp2-hsdp: {dp_shard_size: 4, reshard_after_forward: false}") ==
        Fsdp2{.reshard_after_forward = false, .hybrid = true, .dp_shard_size = 4});
  const auto code = [](const std::string& text) {
    const auto read = read_job(minimal("plans: {" + text + "}\n"), "job.yaml", DiskFiles());
    return read ? "" : read.error().front().code;
  };
  CHECK(code("fsdp2: {reshard_after_forward: false}") == "not-supported");
  CHECK(code("fsdp2: {ignored_params: quantized}") == "not-supported");
  CHECK(plan("fsdp2-hsdp: {ignored_params: quantized}") ==
        Fsdp2{.hybrid = true, .ignored_params = Fsdp2Ignored::quantized});
  CHECK(code("fsdp2-no-reshard: {reshard_after_forward: true}") == "not-supported");
  CHECK(code("fsdp2: {reshard_after_forward: some}") == "wrong-type");
  CHECK(code("fsdp2: {reshard_after_forward: 0}") == "out-of-range");
  CHECK(code("fsdp2: {pin_memory: false}") == "not-supported");
  CHECK(code("fsdp2: {dp_shard_size: 2}") == "not-supported");
  CHECK(code("fsdp2: {mp_policy: {param_type: bfloat16}}") == "unknown-key");
}

TEST_CASE("config/job_reader: plans as a list or with their options") {
  const auto plans = [](const std::string& text) { return job(minimal("plans: " + text + "\n")).plans; };
  CHECK(plans("[fsdp2, single]") == std::vector{*find_plan("fsdp2"), *find_plan("single")});
  const auto options = plans(
      "{ddp: {bucket_cap_mb: 50, gradient_as_bucket_view: true}, fsdp1-full-shard: {use_orig_params: false}, fsdp2: }");
  REQUIRE(options.size() == 3);
  CHECK(std::get<Ddp>(options[0].plan) == Ddp{.bucket_cap_mb = 50, .gradient_as_bucket_view = true});
  CHECK_FALSE(std::get<Fsdp1>(options[1].plan).use_orig_params);
  const auto fsdp1 = plans(
      "{fsdp1-shard-grad-op: {cpu_offload: true, backward_prefetch: no_prefetch, auto_wrap_policy: no_wrap, "
      "mixed_precision_policy: {param_dtype: bfloat16, buffer_dtype: auto}}}");
  const auto expected = Fsdp1{.sharding_strategy = ShardingStrategy::shard_grad_op,
                              .cpu_offload = true,
                              .backward_prefetch = BackwardPrefetch::no_prefetch,
                              .auto_wrap_policy = WrapPolicy::no_wrap,
                              .mixed_precision_policy = {.param_dtype = DType::bfloat16}};
  CHECK(std::get<Fsdp1>(fsdp1.front().plan) == expected);
}

TEST_CASE("config/job_reader: the GPU, by either name, and what replaces its figures") {
  const auto cluster = [](const std::string& text) {
    return job(replaced(minimal(), "gpu: A100 SXM4 80GB", text)).cluster;
  };
  CHECK(cluster("gpu: NVIDIA A100-SXM4-80GB").gpu.capacity == Bytes{81151ULL << 20});
  CHECK(cluster("gpu: A100 SXM4 80GB").mesh == Mesh{});
  CHECK(cluster("gpu: A100 SXM4 80GB, world_size: 8, mesh: {tp: 2, pp: 2}").mesh == Mesh{.tp = 2, .pp = 2});
  const auto slice =
      cluster("gpu: A100 SXM4 80GB, memory: 40GiB, compute_capability: 9.0, used_by_others: 512MiB, margin: 0%");
  CHECK(slice.gpu.capacity == Bytes{40ULL << 30});
  CHECK(slice.gpu.compute_capability == 90);
  CHECK(slice.used_by_others == Bytes{512ULL << 20});
  CHECK(slice.margin == 0);
  CHECK(slice.inter_node_bandwidth == kInterNodeBandwidth);
  CHECK_FALSE(slice.intra_node_bandwidth);
  const auto links = cluster("gpu: A100 SXM4 80GB, intra_node_bandwidth: 300GB/s, inter_node_bandwidth: 12.5 GB/s");
  CHECK(links.intra_node_bandwidth == Bytes{300'000'000'000});
  CHECK(links.inter_node_bandwidth == Bytes{12'500'000'000});
}

TEST_CASE("config/job_reader: a model beside the job, its overrides and its quantization") {
  const std::string config =
      R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "torch_dtype":
          "bfloat16", "quantization_config": {"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}})";
  const MemoryFiles files({{"jobs/m/config.json", config}});
  const auto text =
      replaced(minimal("adapter: {}\n"), "name: llama-3.1-8b", "config: m, overrides: {num_hidden_layers: 1}");
  const auto document = read(text, files);
  CHECK(document.job.model.name == "m");
  CHECK(document.job.model.num_hidden_layers == 1);
  REQUIRE(document.job.quantization);
  CHECK(document.job.quantization->compute_dtype == DType::float32);
  CHECK(find_note(document.notes, "checkpoint-quantization", "quantization"));
  CHECK(find_note(document.notes, "class-default", "vocab_size")->position.file == "jobs/m/config.json");

  const auto asked = read(text + "quantization: {quant_type: fp4}\n", files);
  CHECK(asked.job.quantization->quant_type == QuantType::fp4);
  CHECK(find_note(asked.notes, "checkpoint-quantization", "quantization")->severity == Severity::warning);
}

TEST_CASE("config/job_reader: overrides of a model known by name") {
  CHECK(job(replaced(minimal(), "llama-3.1-8b}", "llama-3.1-8b, overrides: {num_hidden_layers: 2}}"))
            .model.num_hidden_layers == 2);
}

TEST_CASE("config/job_reader: a model from the command line takes the place of all that the job says of its own") {
  const MemoryFiles files(std::map<std::string, std::string>{});
  for (const char* model :
       {"llama-3.1-8b, dtype: float16, overrides: {num_hidden_layers: 2}}",
        "x, family: llama, hidden_size: 64, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 4, "
        "vocab_size: 100, dtype: float16}"}) {
    const auto document =
        read_job(replaced(minimal(), "llama-3.1-8b}", model), "a.yaml", files, {.model = "llama-3.2-1b"});
    REQUIRE(document);
    CHECK(document->job.model.hidden_size == 2048);
    CHECK(document->job.model.num_hidden_layers == 16);
    CHECK(document->job.dtype == DType::float16);
  }
}

TEST_CASE("config/job_reader: a sequence beyond the model's positions is a warning") {
  const auto document = read(replaced(replaced(minimal(), "2048", "8192"), "llama-3.1-8b", "llama-2-7b"));
  const auto* warning = find_note(document.notes, "long-sequence", "training.seq_len");
  REQUIRE(warning);
  CHECK(warning->severity == Severity::warning);
}

TEST_CASE("config/job_reader: a sequence of one token is a warning") {
  const auto document = read(replaced(minimal(), "2048", "1"));
  const auto* warning = find_note(document.notes, "no-labels", "training.seq_len");
  REQUIRE(warning);
  CHECK(warning->severity == Severity::warning);
}

TEST_CASE("config/job_reader: the allocator's text, and the column of what is wrong in it") {
  const auto j = job(minimal("allocator: expandable_segments:True,max_split_size_mb:128\n"));
  CHECK(j.allocator.expandable_segments);
  CHECK(j.allocator.max_split_size == 128ULL << 20);
  CHECK(j.allocator_text == "expandable_segments:True,max_split_size_mb:128");
  const auto bad = read_job(minimal("allocator: 'expandable_segments:True,oops:1'\n"), "a.yaml", MemoryFiles());
  REQUIRE_FALSE(bad);
  CHECK(bad.error()[0].position.line == 5);
  CHECK(bad.error()[0].position.column == 38);
}

TEST_CASE("config/job_reader: the allocator follows the torch release") {
  const auto with = [](const std::string& torch) {
    return job(minimal("stack: {torch: " + torch + "}\nallocator: 'roundup_power2_divisions:[64:8,1024:2,>:1]'\n"))
        .allocator;
  };
  CHECK(with("2.12.0").equal_blocks == EqualBlocks::lowest_address);
  CHECK(with("2.13.0").equal_blocks == EqualBlocks::oldest_segment);
  CHECK(job(minimal("stack: {torch: 2.13.0}\n")).allocator.equal_blocks == EqualBlocks::oldest_segment);
  CHECK(with("2.8.0").power2_divisions_at(1ULL << 30) == 1);
  CHECK(with("2.9.0").power2_divisions_at(1ULL << 30) == 2);
}

TEST_CASE("config/job_reader: a file that cannot be read") {
  CHECK(read_job_file("no/such/job.yaml").error().front().code == "cannot-read");
  CHECK(read_job_file("configs").error().front().code == "cannot-read");
}

TEST_CASE("config/job_reader: every truncation of a job is read or refused, never more") {
  const auto text = minimal(
      "adapter: {r: 8, target_modules: [q_proj, \"v_proj\"]}\nplans: [ddp]\nallocator: 'expandable_segments:True'\n");
  for (std::size_t n = 0; n < text.size(); ++n) {
    const auto document = read_job(text.substr(0, n), "a.yaml", MemoryFiles());
    if (!document) CHECK_FALSE(document.error().empty());
  }
}
