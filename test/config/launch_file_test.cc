#include "config/launch_file.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "config/job_reader.h"
#include "config/memory_files.h"
#include "plan/catalogue.h"
#include "report/export_accelerate.h"
#include "report/export_deepspeed.h"
#include "report/export_torch.h"

namespace qlp {
namespace {

using test::MemoryFiles;

std::optional<LaunchFile> read(const std::string& text, Findings& findings) {
  return read_launch_file("launch", {"plans", {"job.yaml", 5, 8}}, MemoryFiles({{"launch", text}}), findings);
}

LaunchFile read(const std::string& text) {
  Findings findings;
  auto file = read(text, findings);
  for (const auto& d : findings.list()) MESSAGE(d.key_path << ": " << d.message);
  REQUIRE(file);
  return *file;
}

std::string job_text(const std::string& more) {
  return "schema: 1\nmodel: {name: llama-3.1-8b}\ntraining: {seq_len: 128}\n" + more;
}

}  // namespace

TEST_CASE("config/launch_file: what accelerate config asks about FSDP1") {
  const LaunchFile file = read(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 2\n"
      "num_processes: 16\nfsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
      "  fsdp_backward_prefetch: BACKWARD_POST\n  fsdp_forward_prefetch: true\n"
      "  fsdp_cpu_ram_efficient_loading: false\n  fsdp_offload_params: true\n"
      "  fsdp_sharding_strategy: HYBRID_SHARD\n  fsdp_use_orig_params: false\n"
      "  fsdp_state_dict_type: SHARDED_STATE_DICT\n");
  CHECK(file.plan.name == "fsdp1-hybrid-shard");
  const auto& fsdp = std::get<Fsdp1>(file.plan.plan);
  CHECK_FALSE(fsdp.use_orig_params);
  CHECK(fsdp.cpu_offload);
  CHECK(fsdp.forward_prefetch);
  CHECK(fsdp.backward_prefetch == BackwardPrefetch::backward_post);
  CHECK(file.world_size == 16);
  CHECK(file.num_machines == 2);
  CHECK(file.mixed_precision == "bf16");
  CHECK(file.ram_efficient_loading == false);
  CHECK(file.state_dict_type == StateDictType::sharded);
}

TEST_CASE("config/launch_file: classes of units") {
  const auto classes = [](const std::string& lines) {
    const LaunchFile file = read("distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n" + lines);
    if (const auto* fsdp1 = std::get_if<Fsdp1>(&file.plan.plan)) return fsdp1->transformer_cls_names_to_wrap;
    return std::get<Fsdp2>(file.plan.plan).transformer_cls_names_to_wrap;
  };
  const std::string by_class = "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
  const std::string named = "  fsdp_transformer_layer_cls_to_wrap: LlamaAttention, LlamaMLP\n";
  const std::vector<std::string> both{"LlamaAttention", "LlamaMLP"};
  for (const char* version : {"  fsdp_version: 1\n", "  fsdp_version: 2\n"}) {
    CHECK(classes(version + by_class + named) == both);
    CHECK_FALSE(classes(version + by_class));
    CHECK_FALSE(classes(version + named));  // no policy asks for them
    CHECK_FALSE(classes(version + by_class + "  fsdp_transformer_layer_cls_to_wrap:\n"));
    CHECK(classes(version + by_class + "  fsdp_transformer_layer_cls_to_wrap: ' , '\n") == std::vector<std::string>{});
  }
}

TEST_CASE("config/launch_file: keys of fsdp_config may stand without their prefix") {
  const LaunchFile file = read(
      "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {version: 2, reshard_after_forward: false, "
      "auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n");
  CHECK(file.plan.name == "fsdp2-no-reshard");
}

TEST_CASE("config/launch_file: DeepSpeed's numbers and its auto") {
  const LaunchFile file = read(R"({"train_batch_size": "auto", "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "sub_group_size": 1e9,
      "stage3_max_live_parameters": 5e8, "offload_param": {"device": "cpu", "pin_memory": true}}})");
  CHECK(file.plan.name == "zero3");
  const auto& zero = std::get<Zero>(file.plan.plan);
  CHECK_FALSE(zero.reduce_bucket_size);
  CHECK(zero.sub_group_size == 1'000'000'000);
  CHECK(zero.stage3_max_live_parameters == 500'000'000);
  CHECK(zero.offload_param.device == OffloadDevice::cpu);
  CHECK(zero.offload_param.pin_memory);
}

TEST_CASE("config/launch_file: unknown keys are warnings, wrong values errors with their place") {
  Findings findings;
  CHECK(read("distributed_type: FSDP\nnum_processes: 4\nfsdp_config:\n  fsdp_versoin: 2\n", findings));
  const auto& warned = findings.list();
  const auto at = std::ranges::find(warned, "fsdp_config.fsdp_versoin", &Diagnostic::key_path);
  REQUIRE(at != warned.end());
  CHECK(at->severity == Severity::warning);
  CHECK(at->position.line == 4);

  Findings errors;
  CHECK_FALSE(read("distributed_type: FSPD\n", errors));
  REQUIRE(errors.has_errors());
  CHECK(errors.list().front().hint.find("FSDP") != std::string::npos);
  Findings other;
  CHECK_FALSE(read("a: 1\n", other));
  CHECK(other.list().front().code == "not-a-launch-file");
}

TEST_CASE("config/launch_file: a job takes plan, ranks and precision from the file") {
  const MemoryFiles files(std::map<std::string, std::string>{
      {"jobs/fsdp.yaml",
       "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 8\n"
       "fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n"}});
  const auto document = read_job(job_text("cluster: {gpu: A100 SXM4 80GB}\nplans: fsdp.yaml\n"), "jobs/a.yaml", files);
  REQUIRE(document);
  REQUIRE(document->job.plans.size() == 1);
  CHECK(document->job.plans.front() == *find_plan("fsdp2"));
  CHECK(document->job.cluster.world_size == 8);
  CHECK(document->job.cluster.gpus_per_node == 4);
  CHECK(document->job.training.bf16);
}

TEST_CASE("config/launch_file: what DeepSpeed's file says beside the plan is the job's to say") {
  Findings findings;
  CHECK(read(R"({"scheduler": {"type": "WarmupLR"}, "train_micro_batch_size_per_gpu": 4,
                 "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2}})",
             findings));
  std::vector<std::string> warned;
  for (const Diagnostic& d : findings.list())
    if (d.code == "said-in-the-job") warned.push_back(d.key_path);
  CHECK(warned == std::vector<std::string>{"train_micro_batch_size_per_gpu"});
}

TEST_CASE(
    "config/launch_file: what DeepSpeed's file turns on beyond what is planned is an error, turned off it is none") {
  Findings off;
  CHECK(read(R"({"communication_data_type": null, "data_types": {"grad_accum_dtype": null}, "amp": {"enabled": false},
                 "zero_optimization": {"stage": 3, "mics_shard_size": -1, "offload_optimizer": null,
                                       "memory_efficient_linear": true, "allgather_partitions": true}})",
             off));
  CHECK(off.list().empty());
  Findings other_stage;
  CHECK(read(R"({"zero_optimization": {"stage": 2, "sub_group_size": 1e9, "zero_quantized_weights": true}})",
             other_stage));
  CHECK(other_stage.list().empty());

  Findings on;
  read(R"({"compile": {"deepcompile": true}, "amp": {"opt_level": "O1"},
           "zero_optimization": {"stage": 3, "mics_shard_size": 4}})",
       on);
  std::vector<std::string> refused;
  for (const Diagnostic& d : on.list())
    if (d.severity == Severity::error && d.code == "not-supported") refused.push_back(d.key_path);
  std::ranges::sort(refused);
  CHECK(refused == std::vector<std::string>{"amp", "compile", "zero_optimization.mics_shard_size"});
}

TEST_CASE("config/launch_file: options that DeepSpeed's file has at its root and in sections of their own") {
  Findings findings;
  const auto plan = read(R"({"communication_data_type": "FP32", "data_types": {"grad_accum_dtype": "torch.float32"},
                             "torch_autocast": {"enabled": true, "dtype": "bfloat16",
                                                "lower_precision_safe_modules": ["torch.nn.Linear"]},
                             "prescale_gradients": true, "gradient_predivide_factor": 2.0,
                             "bf16": {"enabled": "auto", "bf16_master_weights_and_grads": true,
                                      "bf16_optimizer_states": true, "immediate_grad_update": false},
                             "zero_optimization": {"stage": 2, "overlap_comm": null, "reduce_scatter": false}})",
                         findings);
  REQUIRE(plan);
  CHECK(findings.list().empty());
  auto expected = std::get<Zero>(find_plan("zero2")->plan);
  expected.gradient_clipping = Unsaid::left_out;
  expected.reduce_scatter = false;
  expected.communication_data_type = ZeroDType::fp32, expected.data_types.grad_accum_dtype = ZeroDType::fp32;
  expected.torch_autocast = {.enabled = true, .dtype = ZeroDType::bf16};
  expected.prescale_gradients = true, expected.gradient_predivide_factor = 2;
  expected.bf16.bf16_master_weights_and_grads = expected.bf16.bf16_optimizer_states = true;
  CHECK(std::get<Zero>(plan->plan.plan) == expected);
}

TEST_CASE("config/launch_file: auto and null only where a library makes something of them") {
  for (const char* file : {R"({"communication_data_type": "auto", "zero_optimization": {"stage": 2}})",
                           R"({"communication_data_type": "float32", "zero_optimization": {"stage": 2}})",
                           R"({"data_types": {"grad_accum_dtype": "auto"}, "zero_optimization": {"stage": 2}})",
                           R"({"data_types": {"grad_accum_dtype": "int8"}, "zero_optimization": {"stage": 2}})",
                           R"({"gradient_clipping": null, "zero_optimization": {"stage": 2}})",
                           R"({"prescale_gradients": "auto", "zero_optimization": {"stage": 2}})",
                           R"({"steps_per_print": "auto", "zero_optimization": {"stage": 2}})",
                           R"({"fp16": {"loss_scale": "auto"}, "zero_optimization": {"stage": 2}})",
                           R"({"zero_optimization": {"stage": 2, "overlap_comm": "auto"}})",
                           R"({"zero_optimization": {"stage": 2, "stage3_max_live_parameters": "auto"}})",
                           R"({"zero_optimization": {"stage": 3, "sub_group_size": "auto"}})",
                           R"({"bf16": {"enabled": null}, "zero_optimization": {"stage": 2}})",
                           R"({"bf16": null, "zero_optimization": {"stage": 2}})",
                           R"({"zero_optimization": {"stage": 2, "reduce_scatter": null}})",
                           R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": null}})"}) {
    CAPTURE(file);
    Findings findings;
    read(file, findings);
    CHECK(findings.has_errors());
  }
}

TEST_CASE("config/launch_file: the optimizer of DeepSpeed's file, in large letters or small") {
  const auto optimizer = [](const std::string& text, Findings& findings) {
    const auto file = read(R"({"optimizer": )" + text + R"(, "zero_optimization": {"stage": 2}})", findings);
    REQUIRE(file);
    return std::get<Zero>(file->plan.plan).optimizer;
  };
  Findings findings;
  const ZeroOwnOptimizer own = optimizer(
      R"({"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": 1e-8, "weight_decay": "auto"}})", findings);
  CHECK(own == ZeroOwnOptimizer{.type = ZeroOptimizerType::adamw});
  CHECK(optimizer(R"({"type": "Adam", "params": {"torch_adam": true}})", findings) ==
        ZeroOwnOptimizer{.type = ZeroOptimizerType::adam,
                         .params = {.torch_adam = true, .weight_decay = Unsaid::left_out}});
  CHECK(findings.list().empty());
  const auto only = [&](const std::string& text) {
    Findings found;
    optimizer(text, found);
    REQUIRE(found.list().size() == 1);
    return found.list().front();
  };
  CHECK(only(R"({"type": "OneBitAdam"})").message.find("not compatible with ZeRO") != std::string::npos);
  CHECK(only(R"({"type": "NAdam"})").message == "'NAdam' is none of adam, adamw, adagrad, lion, SGD, RMSprop");
  CHECK(only(R"({"type": "sgd"})").code == "bad-value");  // a module of torch.optim
  CHECK(only(R"({"type": "Lion", "params": {"eps": "auto"}})").key_path == "optimizer.params.eps");
  CHECK(only(R"({"type": "AdamW", "params": {"amsgrad": true}})").code == "not-supported");
  for (const char* without : {R"({})", R"({"params": {"lr": 1e-4}})"}) {
    CHECK(only(without).code == "missing-key");
    CHECK(only(without).key_path == "optimizer.type");
  }
  for (const char* no_word : {R"({"type": "none"})", R"({"type": "auto"})"}) {
    CHECK(only(no_word).severity == Severity::error);
    CHECK(only(no_word).key_path == "optimizer.type");
    CHECK(only(no_word).hint.find("leave it out") == std::string::npos);
  }
  CHECK(only(R"({"type": "AdamW", "lr": 3})").key_path == "optimizer.lr");
}

TEST_CASE("config/launch_file: torch's optimizers in DeepSpeed's file, which asks to say that they are not tested") {
  const auto plan = [](const std::string& more) {
    Findings findings;
    const auto file = read(R"({"optimizer": {"type": "SGD", "params": {"lr": "auto", "momentum": 0.9}})" + more +
                               R"(, "zero_optimization": {"stage": 2}})",
                           findings);
    REQUIRE(file);
    CHECK(findings.list().empty());
    return std::get<Zero>(file->plan.plan);
  };
  const Zero untested = plan("");
  CHECK(untested.optimizer == ZeroOwnOptimizer{.type = ZeroOptimizerType::sgd,
                                               .params = {.weight_decay = Unsaid::left_out, .momentum = 0.9}});
  CHECK_FALSE(untested.zero_allow_untested_optimizer);
  CHECK(plan(R"(, "zero_allow_untested_optimizer": true)").zero_allow_untested_optimizer);
}

TEST_CASE("config/launch_file: what changes no memory in one section of DeepSpeed's file is not known in another") {
  Findings findings;
  read(R"({"bf16": {"weight_decay": 1, "immediate_grad_update": true},
           "zero_optimization": {"stage": 2, "betas": [1, 2], "lower_precision_safe_modules": [],
                                 "offload_optimizer": {"fast_init": true, "stage": 2}}})",
       findings);
  std::vector<std::string> unknown;
  for (const Diagnostic& d : findings.list())
    if (d.code == "unknown-key") unknown.push_back(d.key_path);
  std::ranges::sort(unknown);
  CHECK(unknown == std::vector<std::string>{"bf16.weight_decay", "zero_optimization.betas",
                                            "zero_optimization.lower_precision_safe_modules",
                                            "zero_optimization.offload_optimizer.stage"});
}

TEST_CASE("config/launch_file: an auto that nobody fills in is told once") {
  for (const char* file :
       {R"({"zero_optimization": "auto"})", R"({"something": "auto", "zero_optimization": {"stage": 2}})",
        R"({"compile": "auto", "zero_optimization": {"stage": 2}})",
        R"({"bf16": "auto", "zero_optimization": {"stage": 2}})",
        R"({"zero_optimization": {"stage": 2, "something": "auto"}})"}) {
    CAPTURE(file);
    Findings findings;
    read(file, findings);
    REQUIRE(findings.list().size() == 1);
    CHECK(findings.list().front().code == "bad-value");
    CHECK(findings.list().front().severity == Severity::error);
  }
  Findings findings;
  read(R"({"zero_optimization": "auto"})", findings);
  CHECK(findings.list().front().hint.empty());
}

TEST_CASE("config/launch_file: what is auto is filled in, what is not there is DeepSpeed's default") {
  const auto zero = [](const std::string& text) {
    Findings findings;
    const auto file = read(text, findings);
    CHECK(findings.list().empty());
    REQUIRE(file);
    return std::get<Zero>(file->plan.plan);
  };
  const Zero autos = zero(R"({"gradient_clipping": "auto", "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"},
      "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto"}},
      "zero_optimization": {"stage": "auto", "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
                            "offload_optimizer": {"device": "auto"}}})");
  CHECK(autos.stage == 2);
  CHECK(autos.gradient_clipping == Fillable<double>(Unsaid::automatic));
  CHECK(autos.bf16.enabled == Fillable<bool>(Unsaid::automatic));
  CHECK_FALSE(autos.reduce_bucket_size);
  CHECK(autos.offload_optimizer.device == OffloadDevice::none);
  const Zero absent = zero(R"({"bf16": {"check_grad_overflow": true}, "zero_optimization": {"stage": 3}})");
  CHECK(absent.gradient_clipping == Fillable<double>(Unsaid::left_out));
  CHECK(absent.bf16.enabled == Fillable<bool>(Unsaid::left_out));
  CHECK(absent.fp16.enabled == Fillable<bool>(Unsaid::automatic));  // accelerate makes the section
  CHECK(absent.stage3_prefetch_bucket_size == 50'000'000);
  const std::string inline_zero = "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2, gradient_clipping: ";
  CHECK(zero(inline_zero + "0.5}\n").gradient_clipping == Fillable<double>(0.5));
  CHECK(zero(inline_zero + "0.0}\n").gradient_clipping == Fillable<double>(Unsaid::left_out));
}

TEST_CASE("config/launch_file: nodes are the file's word only where the number of ranks is") {
  const MemoryFiles files(std::map<std::string, std::string>{
      {"a.yaml", "distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 2\n"}});
  const auto own =
      read_job(job_text("cluster: {gpu: A100 SXM4 80GB, world_size: 8}\nplans: a.yaml\n"), "b.yaml", files);
  REQUIRE(own);
  CHECK(own->job.cluster.gpus_per_node == 8);
  const auto taken = read_job(job_text("cluster: {gpu: A100 SXM4 80GB}\nplans: a.yaml\n"), "b.yaml", files);
  REQUIRE(taken);
  CHECK(taken->job.cluster.gpus_per_node == 2);
}

TEST_CASE("config/launch_file: a mesh is as large as the number of processes") {
  Findings findings;
  read(
      "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n"
      "parallelism_config: {parallelism_config_dp_replicate_size: 3, parallelism_config_dp_shard_size: 4}\n",
      findings);
  CHECK(findings.has_errors());
}

TEST_CASE(
    "config/launch_file: layers that ranks share are the job's to say, and nothing else is wrong with their mesh") {
  Findings findings;
  read(
      "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n"
      "parallelism_config: {parallelism_config_dp_replicate_size: 2, parallelism_config_dp_shard_size: 2,\n"
      "  parallelism_config_tp_size: 2}\n",
      findings);
  REQUIRE(findings.take_wrong().size() == 1);
}

TEST_CASE("config/launch_file: ranks that share a sequence are the mesh of the job, unless it says otherwise") {
  const MemoryFiles files(std::map<std::string, std::string>{
      {"a.yaml",
       "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n"
       "parallelism_config: {parallelism_config_dp_shard_size: 2, parallelism_config_cp_size: 4,\n"
       "  parallelism_config_cp_comm_strategy: alltoall}\n"}});
  const auto taken = read_job(job_text("cluster: {gpu: A100 SXM4 80GB}\nplans: a.yaml\n"), "b.yaml", files);
  REQUIRE(taken);
  CHECK(taken->job.cluster.mesh == Mesh{.cp = 4, .cp_comm_strategy = CpCommStrategy::alltoall});
  const auto own =
      read_job(job_text("cluster: {gpu: A100 SXM4 80GB, mesh: {cp: 2}}\nplans: a.yaml\n"), "b.yaml", files);
  REQUIRE(own);
  CHECK(own->job.cluster.mesh.cp == 2);
}

TEST_CASE("config/launch_file: the name of a plan is no file") {
  const auto job = read_job(job_text("cluster: {gpu: A100 SXM4 80GB}\nplans: fsdp2\n"), "a.yaml", MemoryFiles());
  REQUIRE_FALSE(job);
  CHECK(job.error().front().hint == "write plans: [fsdp2]");
}

TEST_CASE("config/launch_file: a file that cannot be read is an error where it is named") {
  const std::string text = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n";
  const MemoryFiles files(std::map<std::string, std::string>{{"accelerate.yaml", text}});
  Findings findings;
  CHECK_FALSE(read_launch_file("none.yaml", {"plans", {"job.yaml", 5, 8}}, files, findings));
  CHECK_FALSE(read_launch_file("accelerate.yaml", {"plans", {"job.yaml", 5, 8}}, files, findings));
  REQUIRE(findings.list().size() == 2);
  CHECK(findings.list()[0].key_path == "plans");
  CHECK(findings.list()[0].position.file == "job.yaml");
  CHECK(findings.list()[0].position.line == 5);
  CHECK(findings.list()[1].key_path == "deepspeed_config.deepspeed_config_file");
  CHECK(findings.list()[1].position.file == "accelerate.yaml");
  CHECK(findings.list()[1].position.line == 3);
  const auto job = read_job(job_text("cluster: {gpu: L4}\nplans: ''\n"), "job.yaml", files);
  REQUIRE_FALSE(job);
  CHECK(job.error()[0].position.line == 5);
}

TEST_CASE("config/launch_file: a file of accelerate names one of DeepSpeed, not itself") {
  Findings findings;
  CHECK_FALSE(read("distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: launch}\n", findings));
  REQUIRE(findings.list().size() == 1);
  CHECK(findings.list()[0].code == "not-a-launch-file");
}

TEST_CASE("config/launch_file: an exported file read back gives the same plan") {
  for (const bool quantized : {false, true})
    for (const auto name : kPlanNames) {
      const std::string quantization =
          quantized ? "quantization: {quant_type: nf4, quant_storage: uint8}\nadapter: {type: lora}\n" : "";
      const std::string cluster = "cluster: {gpu: A100 SXM4 80GB, world_size: 8, gpus_per_node: 4}\n";
      const bool local = name == "fsdp2-local-base";
      const bool fsdp2 = name.starts_with("fsdp2");
      if (fsdp2 && quantized != local) continue;  // integers are left whole by accelerate whatever the file says
      CAPTURE(name);
      auto job =
          read_job(job_text(quantization + cluster + "plans: [" + std::string(name) + "]\n"), "a.yaml", MemoryFiles())
              ->job;
      const auto accelerate = accelerate_config(job, job.plans.front());
      REQUIRE(accelerate);
      std::map<std::string, std::string> files{{"launch.yaml", *accelerate}};
      if (const auto deepspeed = deepspeed_config(job.plans.front()))
        files.emplace(std::string(kDeepspeedConfigFile), *deepspeed);
      const auto again = read_job(job_text(quantization + "cluster: {gpu: A100 SXM4 80GB}\nplans: launch.yaml\n"),
                                  "b.yaml", MemoryFiles(files));
      REQUIRE(again);
      NamedPlan expected = job.plans.front();
      if (auto* hybrid = std::get_if<Fsdp2>(&expected.plan); hybrid && hybrid->hybrid) hybrid->dp_shard_size = 4;
      CHECK(again->job.plans.front() == expected);
      CHECK(again->job.cluster.world_size == (name == "single" ? 1 : 8));
    }
}

TEST_CASE("config/launch_file: an exported optimizer has the parameters that it takes") {
  NamedPlan plan = *find_plan("zero3");
  for (const auto type : {ZeroOptimizerType::sgd, ZeroOptimizerType::rmsprop, ZeroOptimizerType::adagrad,
                          ZeroOptimizerType::lion, ZeroOptimizerType::adamw}) {
    std::get<Zero>(plan.plan).optimizer.type = type;
    const auto text = deepspeed_config(plan);
    REQUIRE(text);
    Findings findings;
    const auto again = read(*text, findings);
    REQUIRE(again);
    CHECK(again->plan == plan);
    CHECK_FALSE(findings.has_errors());
  }
}

TEST_CASE("config/launch_file: an exported optimizer of DeepSpeed's own is read back, and filled in by the Trainer") {
  NamedPlan plan = *find_plan("zero2");
  std::get<Zero>(plan.plan).optimizer = {.type = ZeroOptimizerType::adam,
                                         .params = {.torch_adam = true, .adam_w_mode = false}};
  const auto text = deepspeed_config(plan);
  REQUIRE(text);
  for (const char* filled_in :
       {R"("lr": "auto")", R"("betas": "auto")", R"("eps": "auto")", R"("weight_decay": "auto")"})
    CHECK(text->find(filled_in) != std::string::npos);
  Findings findings;
  const auto again = read(*text, findings);
  REQUIRE(again);
  CHECK(again->plan == plan);
  for (const Diagnostic& d : findings.list()) CHECK(d.code == "said-in-the-job");
}

// Seen with torch 2.14.1, transformers 5.24.0, accelerate 1.15.0: requested as with the Trainer's
// gradient_checkpointing without reentrance, to the byte, under FSDP1 and FSDP2; with transformers 4.57.1 a
// CheckpointError.
TEST_CASE("config/launch_file: FSDP's own activation checkpointing is torch's without reentrance") {
  const MemoryFiles files({{"launch.yaml",
                            "distributed_type: FSDP\nnum_processes: 4\nfsdp_config: {fsdp_version: 2, "
                            "fsdp_activation_checkpointing: true}\n"},
                           {"unused", ""}});
  const auto read = [&](const std::string& more) {
    return read_job(job_text("cluster: {gpu: L4}\nplans: launch.yaml\n" + more), "job.yaml", files);
  };
  const auto job = read("");
  REQUIRE(job);
  CHECK(job->job.training.gradient_checkpointing == GradientCheckpointing::nonreentrant);
  const auto old = read("stack: {transformers: 4.57.1}\n");
  REQUIRE_FALSE(old);
  CHECK(old.error().front().message.find("CheckpointError") != std::string::npos);
  const auto twice = read_job(
      "schema: 1\nmodel: {name: llama-3.1-8b}\ntraining: {seq_len: 128, gradient_checkpointing: true}\n"
      "cluster: {gpu: L4}\nplans: launch.yaml\n",
      "job.yaml", files);
  REQUIRE_FALSE(twice);
  CHECK(twice.error().front().code == "checkpointed-twice");
}

// Seen with torch 2.14.1, transformers 5.24.0, PEFT 0.21.2, accelerate 1.15.0, adapters in float32 and in bfloat16; a
// full fine-tune under FSDP1 and LoRA under FSDP2 run.
TEST_CASE("config/launch_file: FSDP1's own activation checkpointing stops beside an adapter") {
  const auto read = [](const std::string& more, const std::string& version) {
    const MemoryFiles files({{"launch.yaml", "distributed_type: FSDP\nnum_processes: 4\nfsdp_config: {fsdp_version: " +
                                                 version + ", fsdp_activation_checkpointing: true}\n"},
                             {"unused", ""}});
    return read_job("schema: 1\nmodel: {name: llama-3.1-8b}\ntraining: {seq_len: 128}\ncluster: {gpu: L4}\n" + more +
                        "plans: launch.yaml\n",
                    "job.yaml", files);
  };
  const std::string lora = "adapter: {type: lora, r: 8}\n";
  CHECK(read("", "1"));
  CHECK(read(lora, "2"));
  const auto stops = read(lora, "1");
  REQUIRE_FALSE(stops);
  CHECK(stops.error().front().message.find("CheckpointError") != std::string::npos);
}

TEST_CASE("config/launch_file: a shard map, read back, is the same plan on the same mesh") {
  const auto job_of = [](const std::string& more) {
    return "schema: 1\nmodel: {family: mixtral, hidden_size: 64, intermediate_size: 96, num_hidden_layers: 4, "
           "num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 128, max_position_embeddings: 64, "
           "num_experts: 4}\ntraining: {seq_len: 16, gradient_accumulation_steps: 4, mixed_precision: bf16}\n" +
           more;
  };
  const std::vector<std::pair<std::string, std::string>> cases{{"{tp: 2}", "fsdp2-hsdp: {dp_shard_size: 2}"},
                                                               {"{tp: 2}", "fsdp2: {reshard_after_forward: true}"},
                                                               {"{cp: 4, cp_comm_strategy: alltoall}", "fsdp2: {}"},
                                                               {"{ep: 2}", "fsdp2-no-reshard: {}"},
                                                               {"{pp: 4}", "single: {}"},
                                                               {"{tp: 2}", "single: {}"},
                                                               {"{}", "fsdp1-full-shard: {use_orig_params: false}"},
                                                               {"{}", "ddp: {bucket_cap_mb: 50}"}};
  for (const auto& [mesh, plan] : cases) {
    const std::string cluster = "cluster: {gpu: H100 SXM5 80GB, world_size: 8, mesh: " + mesh + "}\n";
    const auto written = read_job(job_of(cluster + "plans: {" + plan + "}\n"), "job.yaml", MemoryFiles{});
    REQUIRE(written);
    const auto text = shard_map_json(written->job, written->job.plans.front());
    if (!text) MESSAGE(mesh << " " << plan << ": " << text.error().front().message);
    REQUIRE(text);
    std::map<std::string, std::string> files;
    files["map.json"] = *text;
    const auto back =
        read_job(job_of("cluster: {gpu: H100 SXM5 80GB}\nplans: map.json\n"), "job.yaml", MemoryFiles(files));
    REQUIRE(back);
    CHECK(back->job.plans.size() == 1);
    CHECK(back->job.plans.front().name == written->job.plans.front().name);
    CHECK(back->job.plans.front().plan == written->job.plans.front().plan);
    CHECK(back->job.cluster.mesh == written->job.cluster.mesh);
    CHECK(back->job.cluster.world_size == 8);
  }
}

}  // namespace qlp
