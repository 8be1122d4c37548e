#include "config/foreign_job.h"

#include <algorithm>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "config/job_reader.h"
#include "config/memory_files.h"

namespace qlp {
namespace {

using test::MemoryFiles;

MemoryFiles with(std::map<std::string, std::string> files) { return MemoryFiles(std::move(files)); }

/// On GPUs that no training file names.
JobOverrides on(std::int64_t gpus) {
  JobOverrides overrides;
  overrides.gpu = "H100 SXM5 80GB";
  overrides.world_size = gpus;
  return overrides;
}

JobDocument read(const std::string& text, const JobOverrides& overrides, const MemoryFiles& files = MemoryFiles{}) {
  auto document = read_job(text, "train.yaml", files, overrides);
  if (!document)
    for (const auto& d : document.error()) MESSAGE(d.key_path << ": " << d.message);
  REQUIRE(document);
  return *std::move(document);
}

JobSpec job(const std::string& text, const JobOverrides& overrides = on(1), const MemoryFiles& files = MemoryFiles{}) {
  return read(text, overrides, files).job;
}

Diagnostics errors_of(const std::string& text, const JobOverrides& overrides = on(1),
                      const MemoryFiles& files = MemoryFiles{}) {
  auto document = read_job(text, "train.yaml", files, overrides);
  REQUIRE_FALSE(document);
  return document.error();
}

bool tells(const Diagnostics& list, std::string_view code, std::string_view words) {
  return std::ranges::any_of(list, [&](const Diagnostic& d) {
    return d.code == code && (d.message + " " + d.hint).find(words) != std::string::npos;
  });
}

const std::string kAxolotl =
    "base_model: NousResearch/Llama-2-7b-hf\nload_in_8bit: false\nload_in_4bit: true\ndatasets:\n  - path: a/b\n"
    "val_set_size: 0.05\nadapter: qlora\nlora_model_dir:\nsequence_len: 512\nsample_packing: false\nlora_r: 32\n"
    "lora_alpha: 16\nlora_dropout: 0.05\nlora_target_linear: true\nwandb_project:\ngradient_accumulation_steps: 4\n"
    "micro_batch_size: 4\noptimizer: adamw_torch_fused\nbf16: auto\ntf32: false\ngradient_checkpointing: true\n"
    "gradient_checkpointing_kwargs:\n  use_reentrant: true\nattn_implementation: flash_attention_2\n";
const std::string kAxolotlFsdp =
    "fsdp:\n  - full_shard\n  - auto_wrap\nfsdp_config:\n  fsdp_limit_all_gathers: true\n"
    "  fsdp_sync_module_states: true\n  fsdp_offload_params: true\n  fsdp_use_orig_params: false\n"
    "  fsdp_cpu_ram_efficient_loading: true\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    "  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer\n  fsdp_state_dict_type: FULL_STATE_DICT\n";
const std::string kLlamaFactory =
    "model_name_or_path: Qwen/Qwen3-4B-Instruct-2507\nquantization_bit: 4\nquantization_method: bnb\nstage: sft\n"
    "do_train: true\nfinetuning_type: lora\nlora_rank: 8\nlora_target: all\ndataset: identity\ntemplate: qwen3\n"
    "output_dir: saves\nlogging_steps: 10\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n"
    "learning_rate: 1.0e-4\nbf16: true\nddp_timeout: 180000000\nresume_from_checkpoint: null\n";
const std::string kTrl =
    "model_name_or_path: mistralai/Mistral-7B-v0.1\ntorch_dtype: bfloat16\nattn_implementation: flash_attention_2\n"
    "load_in_4bit: true\nuse_peft: true\nlora_target_modules:\n- q_proj\n- k_proj\nbf16: true\neval_strategy: epoch\n"
    "gradient_checkpointing: true\ngradient_checkpointing_kwargs:\n  use_reentrant: false\nmax_seq_length: 2048\n"
    "per_device_eval_batch_size: 8\nper_device_train_batch_size: 4\nlearning_rate: 2.0e-04\n";

}  // namespace

TEST_CASE("config/foreign_job: axolotl's file is read with axolotl's defaults") {
  const JobSpec spec = job(kAxolotl);
  CHECK(spec.model.name == "llama-2-7b");
  CHECK(spec.dtype == DType::bfloat16);
  REQUIRE(spec.quantization);
  CHECK(spec.quantization->quant_type == QuantType::nf4);
  CHECK(spec.quantization->double_quant);
  CHECK(spec.quantization->quant_storage == DType::bfloat16);
  REQUIRE(spec.adapter);
  CHECK(spec.adapter->r == 32);
  CHECK(spec.adapter->all_linear);
  CHECK(spec.training.micro_batch_size == 4);
  CHECK(spec.training.seq_len == 512);
  CHECK(spec.training.gradient_accumulation_steps == 4);
  CHECK(spec.training.gradient_checkpointing == GradientCheckpointing::reentrant);
  CHECK(spec.training.bf16);
  CHECK(spec.training.attention == Attention::flash_attention_2);
  CHECK(spec.training.evaluation->per_device_eval_batch_size == 4);
  CHECK(spec.plans.size() == 1);
  CHECK(spec.plans.front().name == "single");
  CHECK(job(kAxolotl, on(8)).plans.front().name == "ddp");
}

TEST_CASE("config/foreign_job: axolotl adds the names of all linear layers to those that are listed") {
  const JobSpec spec = job(kAxolotl + "lora_target_modules: [lm_head, all-linear]\npeft_layers_to_transform: [0, 1]\n");
  CHECK(spec.adapter->all_linear);
  CHECK(spec.adapter->target_modules == std::vector<std::string>{"all-linear", "lm_head"});
  CHECK(spec.adapter->layers_to_transform == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("config/foreign_job: axolotl's FSDP is the Trainer's, version 1 unless it says 2") {
  const JobSpec first = job(kAxolotl + kAxolotlFsdp, on(2));
  CHECK(first.plans.front().name == "fsdp1-full-shard");
  const auto& fsdp1 = std::get<Fsdp1>(first.plans.front().plan);
  CHECK(fsdp1.cpu_offload);
  CHECK_FALSE(fsdp1.use_orig_params);
  CHECK(fsdp1.backward_prefetch == BackwardPrefetch::no_prefetch);
  CHECK_FALSE(fsdp1.transformer_cls_names_to_wrap);
  CHECK(first.loading == Loading::automatic);

  const JobSpec second = job(kAxolotl +
                                 "dp_shard_size: 4\ndp_replicate_size: 2\nfsdp_version: 2\nfsdp_config:\n"
                                 "  offload_params: false\n  reshard_after_forward: true\n"
                                 "  activation_checkpointing: true\n",
                             {.gpu = "H100 SXM5 80GB", .model = {}, .launch = {}, .world_size = {}});
  CHECK(second.plans.front().name == "fsdp2-hsdp");
  CHECK(std::get<Fsdp2>(second.plans.front().plan).dp_shard_size == 4);
  CHECK(second.cluster.world_size == 8);
  CHECK(second.training.gradient_checkpointing == GradientCheckpointing::nonreentrant);
  CHECK(second.loading == Loading::cpu);
}

TEST_CASE("config/foreign_job: the classes that the Trainer wraps, where they are not the decoder layers") {
  const auto classes = [](const std::string& policy, const std::string& named) {
    const JobSpec spec = job(kTrl + "bnb_4bit_quant_storage: bfloat16\nfsdp: full_shard" + policy +
                                 "\nfsdp_config: {fsdp_version: 1, transformer_layer_cls_to_wrap: " + named + "}\n",
                             on(2));
    return std::get<Fsdp1>(spec.plans.front().plan).transformer_cls_names_to_wrap;
  };
  CHECK(classes(" auto_wrap", "[Qwen3MLP]") == std::vector<std::string>{"Qwen3MLP"});
  CHECK(classes(" auto_wrap", "'Qwen3Attention, Qwen3MLP'") == std::vector<std::string>{"Qwen3Attention", "Qwen3MLP"});
  CHECK(classes(" auto_wrap", "[Qwen3DecoderLayer]") == std::vector<std::string>{"Qwen3DecoderLayer"});
  CHECK_FALSE(classes(" auto_wrap", "MistralDecoderLayer"));
  CHECK_FALSE(classes(" auto_wrap", "[MistralDecoderLayer]"));
  CHECK_FALSE(classes(" auto_wrap", "null"));
  CHECK_FALSE(classes("", "[Qwen3MLP]"));
}

TEST_CASE("config/foreign_job: the Trainer wraps by classes or by size") {
  const auto errors = errors_of(kTrl +
                                    "fsdp: full_shard auto_wrap\nfsdp_config: {fsdp_version: 1, min_num_params: 100, "
                                    "transformer_layer_cls_to_wrap: MistralMLP}\n",
                                on(2));
  CHECK(tells(errors, "bad-value", "mutually exclusive"));
}

TEST_CASE("config/foreign_job: LLaMA-Factory stores in the dtype of its products, and checkpoints reentrantly") {
  const JobSpec spec = job(kLlamaFactory);
  CHECK(spec.model.name == "qwen3-4b");
  CHECK(spec.quantization->quant_storage == DType::bfloat16);
  CHECK(spec.quantization->double_quant);
  CHECK(spec.adapter->lora_alpha == 16);
  CHECK(spec.adapter->all_linear);
  CHECK(spec.training.seq_len == 2048);
  CHECK(spec.training.gradient_checkpointing == GradientCheckpointing::reentrant);
}

TEST_CASE("config/foreign_job: a whole model is float32 in LLaMA-Factory, except under ZeRO-3") {
  const std::string full =
      "model_name_or_path: Qwen/Qwen3-4B\nfinetuning_type: full\nbf16: true\nper_device_train_batch_size: 1\n";
  CHECK(job(full).dtype == DType::float32);
  CHECK(job(full + "pure_bf16: true\n").dtype == DType::bfloat16);
  const MemoryFiles files = with({{"conf/z3.json", R"({"zero_optimization": {"stage": 3}})"}});
  const JobSpec zero3 = job(full + "deepspeed: conf/z3.json\n", on(4), files);
  CHECK(zero3.dtype == DType::bfloat16);
  CHECK(zero3.plans.front().name == "zero3");
}

TEST_CASE("config/foreign_job: TRL casts adapters beside 4-bit weights") {
  const JobDocument document = read(kTrl, on(1));
  const JobSpec& spec = document.job;
  CHECK(spec.model.name == "mistral-7b-v0.1");
  CHECK(spec.quantization->quant_storage == DType::uint8);
  CHECK_FALSE(spec.quantization->double_quant);
  CHECK(spec.adapter->r == 16);
  CHECK(spec.adapter->dtype == DType::bfloat16);
  CHECK(spec.training.loss == Loss::plain);
  CHECK(tells(document.notes, "not-as-written", "all logits"));
  CHECK(job(kTrl + "use_liger_kernel: true\n").training.loss == Loss::liger);
  CHECK(spec.training.seq_len == 2048);
  CHECK(spec.training.evaluation->per_device_eval_batch_size == 8);
  CHECK(tells(document.notes, "model-by-name", "--model FILE"));
  CHECK(tells(document.notes, "default-used", "the default of TRL"));
}

TEST_CASE(
    "config/foreign_job: a file to launch with gives the plan, and says what the Trainer does differently under it") {
  const MemoryFiles files = with({{"fsdp2.yaml",
                                   "distributed_type: FSDP\nnum_processes: 4\nmixed_precision: bf16\n"
                                   "fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n"}});
  JobOverrides overrides;
  overrides.gpu = "H100 SXM5 80GB";
  overrides.launch = "fsdp2.yaml";
  const JobSpec spec = job(kLlamaFactory, overrides, files);
  CHECK(spec.plans.front().name == "fsdp2");
  CHECK(spec.cluster.world_size == 4);
  CHECK(spec.training.gradient_checkpointing == GradientCheckpointing::nonreentrant);
  // TRL's uint8 storage cannot be cut.
  CHECK(job(kTrl, overrides, files).plans.front().name == "fsdp2-local-base");
}

TEST_CASE("config/foreign_job: FSDP in TrainingArguments goes by the version of transformers") {
  const std::string fsdp = kTrl + "bnb_4bit_quant_storage: bfloat16\nfsdp: shard_grad_op auto_wrap offload\n";
  const JobSpec recent = job(fsdp, on(2));
  CHECK(recent.plans.front().name == "fsdp2-no-reshard");
  CHECK(std::get<Fsdp2>(recent.plans.front().plan).cpu_offload);
  const MemoryFiles files = with({{"trl.yaml", fsdp}});
  const JobSpec old =
      job("schema: 1\nfrom: trl.yaml\nstack: {transformers: 4.57.1}\ncluster: {gpu: H100 SXM5 80GB, world_size: 2}\n",
          {}, files);
  CHECK(old.plans.front().name == "fsdp1-shard-grad-op");
}

TEST_CASE(
    "config/foreign_job: fsdp_config may be a file, beside the training file or below where its tool was started") {
  const std::string text = kTrl + "bnb_4bit_quant_storage: bfloat16\nfsdp: full_shard auto_wrap\nfsdp_config: ";
  const MemoryFiles files =
      with({{"jobs/trl.yaml", text + "conf/fsdp.json\n"},
            {"conf/fsdp.json", R"({"backward_prefetch": "backward_pre", "forward_prefetch": "True",
                                   "limit_all_gathers": false, "forward_prefetsch": 1})"}});
  const auto document = read_job(
      "schema: 1\nfrom: jobs/trl.yaml\nstack: {transformers: 4.57.1}\ncluster: {gpu: H100 SXM5 80GB, world_size: 2}\n",
      "job.yaml", files);
  REQUIRE(document);
  const auto& plan = std::get<Fsdp1>(document->job.plans.front().plan);
  CHECK(plan.backward_prefetch == BackwardPrefetch::backward_pre);
  CHECK(plan.forward_prefetch);
  CHECK_FALSE(plan.limit_all_gathers);
  const auto warned = std::ranges::find(document->notes, "unknown-key", &Diagnostic::code);
  REQUIRE(warned != document->notes.end());
  CHECK(warned->position.file.ends_with("conf/fsdp.json"));
  CHECK(tells(errors_of(text + "gone.json\n"), "cannot-read", ""));
  CHECK(tells(errors_of(text + "[1]\n"), "wrong-type", "the name of a file"));
}

TEST_CASE("config/foreign_job: a file that is no training file says what it is, and where it belongs") {
  CHECK(tells(errors_of("backward_prefetch: backward_pre\n"), "not-a-job", "fsdp_config: FILE"));
  CHECK(tells(errors_of("scenarios: []\n"), "not-a-job", "many jobs"));
  CHECK(tells(errors_of("per_device_train_batch_size: 4\n"), "missing-key", "model"));
}

TEST_CASE("config/foreign_job: a job names a training file, and its own keys beat it") {
  const MemoryFiles files = with({{"conf/axolotl.yml", kAxolotl}, {"job.json", "{}"}});
  const JobSpec spec =
      job("schema: 1\nfrom: conf/axolotl.yml\nmodel: {name: llama-3.1-8b}\ntraining: {seq_len: 1024, loss: liger}\n"
          "adapter: {r: 8}\nquantization: {double_quant: false}\ncluster: {gpu: A100 SXM4 80GB, memory: 40GiB}\n"
          "plans: [ddp]\n",
          {}, files);
  CHECK(spec.model.name == "llama-3.1-8b");
  CHECK(spec.training.seq_len == 1024);
  CHECK(spec.training.micro_batch_size == 4);
  CHECK(spec.training.loss == Loss::liger);
  CHECK(spec.adapter->r == 8);
  CHECK(spec.adapter->lora_alpha == 16);
  CHECK_FALSE(spec.quantization->double_quant);
  CHECK(spec.cluster.gpu.capacity == Bytes{40ULL << 30});
  CHECK(spec.plans.front().name == "ddp");
}

TEST_CASE("config/foreign_job: the command line beats every kind of file") {
  const MemoryFiles files =
      with({{"m/config.json",
             R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 100,
                                "num_hidden_layers": 2, "num_attention_heads": 4, "torch_dtype": "bfloat16"})"}});
  JobOverrides overrides = on(2);
  overrides.model = "m";
  CHECK(job(kAxolotl, overrides, files).model.hidden_size == 64);
  CHECK(job("schema: 1\nmodel: {name: llama-3.1-8b}\ntraining: {seq_len: 8}\ncluster: {gpu: L4}\n", overrides, files)
            .model.hidden_size == 64);
  overrides.model = "qwen3-8b";
  const JobSpec spec = job("base_model: someone/unheard-of\n", overrides);
  CHECK(spec.model.name == "qwen3-8b");
  CHECK(spec.cluster.world_size == 2);
}

TEST_CASE("config/foreign_job: what changes memory and cannot be planned is refused, what is not known is told") {
  CHECK(tells(errors_of("base_model: meta-llama/Llama-3.1-8B\nrl: dpo\n"), "not-supported", "only supervised"));
  CHECK(tells(errors_of("base_model: TheBloke/Llama-2-7B-GPTQ\ngptq: true\n"), "unknown-model", "--model FILE"));
  CHECK(tells(errors_of(kLlamaFactory + "use_unsloth: true\n"), "not-supported", "Unsloth"));
  CHECK(tells(errors_of("model_name_or_path: Qwen/Qwen3-4B\nstage: dpo\n"), "not-supported", "only sft and pt"));
  const Diagnostics misspelt = errors_of("base_model: Qwen/Qwen3-4B\nadapter: qlor\nlora_r: 8\nsequence_len: 64\n");
  CHECK(tells(misspelt, "not-supported", "'qlor', only lora and qlora are planned"));
  CHECK(misspelt.size() == 2);  // and the model by its name: the other keys are read
  CHECK(misspelt.front().hint == "did you mean qlora?");
  CHECK(tells(errors_of("base_model: meta-llama/Llama-3.1-8B\nadapter: qlora\n"), "not-supported", "load_in_4bit"));
  CHECK(tells(read(kAxolotl + "lora_kernel_speed: 7\n", on(1)).notes, "unknown-key", "lora_kernel_speed"));
  CHECK(tells(read(kAxolotl + "lora_mlp_kernel: true\n", on(1)).notes, "not-as-written", "lora_mlp_kernel"));
  const auto silent = read(kAxolotl, on(1)).notes;
  CHECK_FALSE(tells(silent, "unknown-key", ""));
}

TEST_CASE("config/foreign_job: values of the wrong kind are errors where they stand, all at once") {
  const std::string base = "base_model: meta-llama/Llama-3.1-8B\n";
  for (const char* line : {"lora_r: many\nadapter: lora\n", "fsdp_config: 5\n",
                           "bnb_config_kwargs: [1]\nload_in_4bit: true\n"
                           "adapter: qlora\n",
                           "dp_shard_size: 0\n", "optimizer: [a]\n", "bf16: maybe\n",
                           "dp_shard_size: 60000\ndp_replicate_size: 60000\ntensor_parallel_size: 60000\n"}) {
    CAPTURE(line);
    const auto errors = errors_of(base + line);
    CHECK(errors.front().position.line >= 2);
    CHECK(errors.front().position.file == "train.yaml");
  }
  const auto three = errors_of(base + "rl: dpo\nrelora: true\nsequence_len: long\n");
  CHECK(std::ranges::count(three, Severity::error, &Diagnostic::severity) == 3);
  CHECK(three.size() == 4);  // base_model's warning after them
  const auto both = errors_of(base + "sequence_length: 4096\nbf16: maybe\n");
  CHECK(both.front().severity == Severity::error);
  CHECK(tells(both, "unknown-key", "sequence_length"));
}

TEST_CASE("config/foreign_job: what is missing is asked for by the option that gives it") {
  JobOverrides none;
  CHECK(tells(errors_of(kAxolotl, none), "missing-key", "--gpu NAME"));
  none.gpu = "H100 SXM5 80GB";
  CHECK(tells(errors_of(kAxolotl + kAxolotlFsdp, none), "missing-key", "--gpus N"));
  CHECK(tells(errors_of(kAxolotl + "deepspeed: nowhere/z3.json\n"), "cannot-read", "nowhere"));
}

TEST_CASE("config/foreign_job: files that are no training files say what they are for") {
  CHECK(tells(errors_of("distributed_type: FSDP\nnum_processes: 8\n"), "not-a-job", "--launch FILE"));
  CHECK(tells(errors_of(R"({"zero_optimization": {"stage": 2}})"), "not-a-job", "--launch FILE"));
  CHECK(tells(errors_of(R"({"peft_type": "LORA", "r": 8})"), "not-a-job", "adapter: FILE"));
  CHECK(tells(errors_of(R"({"architectures": ["LlamaForCausalLM"]})"), "not-a-job", "config: FILE"));
  CHECK(tells(errors_of("model:\n  _component_: torchtune.models.llama2.qlora_llama2_7b\n"), "not-a-job", "torchtune"));
}

TEST_CASE("config/foreign_job: a job names PEFT's adapter_config.json") {
  const std::string base =
      "schema: 1\nmodel: {name: llama-3.1-8b}\ntraining: {seq_len: 8}\ncluster: {gpu: L4}\nadapter: adapter_config.json\n";
  const MemoryFiles files = with(
      {{"adapter_config.json", R"({"peft_type": "LORA", "r": 32, "lora_alpha": 64, "lora_dropout": 0.0, "bias": "none",
                                   "target_modules": ["v_proj", "q_proj"], "use_dora": true, "inference_mode": true,
                                   "layers_to_transform": null, "modules_to_save": null, "alpha_pattern": {"a": 1},
                                   "task_type": "CAUSAL_LM"})"},
       {"ia3/adapter_config.json", R"({"peft_type": "IA3"})"},
       {"list/adapter_config.json", R"({"peft_type": "LORA", "target_modules": ["all-linear", "lm_head"]})"}});
  const JobSpec spec = job(base, {}, files);
  CHECK(spec.adapter->r == 32);
  CHECK(spec.adapter->use_dora);
  CHECK(spec.adapter->target_modules == std::vector<std::string>{"v_proj", "q_proj"});
  const auto errors_with = [&](const std::string& folder) {
    return errors_of("schema: 1\nmodel: {name: llama-3.1-8b}\ntraining: {seq_len: 8}\ncluster: {gpu: L4}\nadapter: " +
                         folder + "/adapter_config.json\n",
                     {}, files);
  };
  CHECK(tells(errors_with("ia3"), "bad-value", "LORA"));
  CHECK(tells(errors_with("list"), "bad-value", "PEFT looks for a module that is called all-linear"));
}

}  // namespace qlp
