// What people reported of their jobs, and what the planner should have told them. Each case names the thread; figures
// are those of the thread, or follow from its shapes.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "config/job_reader.h"
#include "config/memory_files.h"
#include "estimate/check.h"
#include "estimate/estimate.h"

namespace qlp {
namespace {

JobSpec job(const std::string& text) {
  auto document = read_job("schema: 1\n" + text, "job.yaml", test::MemoryFiles{});
  if (!document)
    for (const auto& e : document.error()) MESSAGE(e.key_path << ": " << e.message);
  REQUIRE(document);
  return document->job;
}

/// The mistakes that reading the job and its config.json finds.
Diagnostics refused(const std::string& text, const std::string& config) {
  auto document = read_job("schema: 1\n" + text, "job.yaml", test::MemoryFiles{{{"config.json", config}}});
  REQUIRE_FALSE(document);
  return document.error();
}

bool says(const Diagnostics& found, std::string_view words) {
  return std::ranges::any_of(found, [&](const Diagnostic& d) { return d.message.find(words) != std::string::npos; });
}

/// The job under its only plan.
Report checked(const std::string& text) {
  const JobSpec spec = job(text);
  return check(spec, spec.plans.front());
}

std::optional<Finding> finding(const Report& report, std::string_view code) {
  const auto found = std::ranges::find(*report.findings, code, &Finding::code);
  return found == report.findings->end() ? std::nullopt : std::optional{*found};
}

/// Rank 0 under the job's only plan.
RankReport ran(const std::string& text) {
  const Report report = estimate(job(text));
  REQUIRE(report.plans.front().applicable());
  return report.plans.front().ranks.front();
}

PeakReport peak(const std::string& text) { return ran(text).peak; }

double gb(Bytes bytes) { return static_cast<double>(bytes.count()) / 1e9; }
double gib(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 30); }

}  // namespace

TEST_CASE("estimate/reports: PEFT's k-bit preparation costs Qwen3-14B 5 GB (huggingface/trl 4335)") {
  const std::string text =
      "model: {name: qwen3-14b}\nquantization: {quant_type: nf4, double_quant: true, prepare_kbit: true}\n"
      "adapter: {type: lora, r: 16}\n"
      "training: {seq_len: 1024, gradient_checkpointing: true, mixed_precision: bf16}\n"
      "cluster: {gpu: A100 SXM4 40GB}\nplans: [single]\n";
  const Report report = checked(text);
  const auto found = finding(report, "fp32-upcast-of-frozen-base");
  REQUIRE(found);
  REQUIRE(found->fix);
  // 19.105 against 14.156 GB reserved: embedding and head of 151936 x 5120 in float32 instead of bfloat16 are 3.1 GB,
  // and the rest is the head's input and logits in float32.
  CHECK(gb(*found->evidence) == doctest::Approx(6.23).epsilon(0.01));
  CHECK(found->fix->saving->count() > 3'100'000'000);
}

TEST_CASE("estimate/reports: copies of embedding and head in float32 cost 8 GB (unslothai/unsloth 1186, 633)") {
  const std::string text =
      "model: {name: qwen2.5-7b}\nquantization: {quant_type: nf4, double_quant: true}\n"
      "adapter: {type: lora, r: 16, target_modules: all-linear, modules_to_save: [embed_tokens, lm_head], dtype: float32}\n"
      "training: {seq_len: 1024, gradient_checkpointing: true, mixed_precision: bf16}\n"
      "cluster: {gpu: A100 SXM4 40GB}\nplans: [single]\n";
  const auto found = finding(checked(text), "modules-to-save-in-float32");
  REQUIRE(found);
  // 1.09e9 elements: 17.4 GB with gradient and both moments in float32, half of it in bfloat16.
  CHECK(gb(*found->evidence) == doctest::Approx(4.36).epsilon(0.01));
  REQUIRE(found->fix);
  CHECK(gb(Bytes{static_cast<std::uint64_t>(found->fix->saving->count())}) > 8.0);
}

TEST_CASE("estimate/reports: the inputs of 36 layers at 131072 tokens are 39 GB (huggingface/accelerate 4175)") {
  const auto found =
      finding(checked("model: {name: qwen3-8b}\nadapter: {type: lora, r: 16}\n"
                      "training: {seq_len: 131072, gradient_checkpointing: true, mixed_precision: bf16, loss: liger}\n"
                      "cluster: {gpu: H200 SXM 141GB}\nplans: [single]\n"),
              "layer-inputs-dominate");
  REQUIRE(found);
  CHECK(gb(*found->evidence) >= 38.65);
}

TEST_CASE("estimate/reports: logits dominate a tiny model with a large vocabulary (huggingface/trl 3678)") {
  const auto found = finding(checked("model: {name: qwen2.5-0.5b, overrides: {num_hidden_layers: 2}}\n"
                                     "training: {seq_len: 512, micro_batch_size: 2, mixed_precision: bf16}\n"
                                     "cluster: {gpu: H100 SXM5 80GB}\nplans: [single]\n"),
                             "logits-dominate");
  REQUIRE(found);
  CHECK(found->evidence->count() >= 310'000'000);  // [1024, 151936] in 16 bit
  REQUIRE(found->fix);
  CHECK(found->fix->text.find("liger") != std::string::npos);
}

TEST_CASE("estimate/reports: accelerate of 2025 casts the frozen base under FSDP2 (huggingface/accelerate 3844)") {
  const std::string text =
      "model: {name: llama-3.1-8b}\nadapter: {type: lora, r: 16}\n"
      "training: {seq_len: 2048, gradient_checkpointing: true, mixed_precision: bf16}\n"
      "cluster: {gpu: A800 SXM4 80GB, world_size: 4}\nplans: [fsdp2]\n"
      "stack: {torch: 2.8.0, transformers: 4.57.1, peft: 0.18.0, accelerate: ";
  const auto found = finding(checked(text + "1.10.1}\n"), "fp32-upcast-of-frozen-base");
  REQUIRE(found);
  CHECK(found->severity == Severity::error);
  CHECK(gb(*found->evidence) == doctest::Approx(4 * 8.03).epsilon(0.01));  // 4 bytes a parameter over all ranks
  REQUIRE(found->fix);
  CHECK(*found->fix->saving > ByteDelta{});
  CHECK_FALSE(finding(checked(text + "1.15.0}\n"), "fp32-upcast-of-frozen-base"));
}

TEST_CASE("estimate/reports: logits of 15000 tokens are 19 GB in Llama 3 (hiyouga/LLaMA-Factory 6531)") {
  const auto found =
      finding(checked("model: {name: llama-3.1-8b}\nadapter: {type: lora, r: 16, target_modules: all-linear}\n"
                      "training: {seq_len: 15000, gradient_checkpointing: true, mixed_precision: bf16}\n"
                      "cluster: {gpu: A100 SXM4 80GB, world_size: 4}\nplans: [fsdp1-full-shard]\n"),
              "logits-dominate");
  REQUIRE(found);
  CHECK(gb(*found->evidence) >= 19.2);
}

TEST_CASE("estimate/reports: 32768 tokens of Llama-3.1-70B QLoRA do not fit 8 x 80 GB (hiyouga/LLaMA-Factory 5169)") {
  const Report report = checked(
      "model: {name: llama-3.1-70b}\nadapter: {type: lora, r: 16, target_modules: all-linear}\n"
      "quantization: {quant_type: nf4, double_quant: true, quant_storage: bfloat16}\n"
      "training: {seq_len: 32768, gradient_checkpointing: true, mixed_precision: bf16}\n"
      "cluster: {gpu: A100 SXM4 80GB, world_size: 8}\nplans: [fsdp1-full-shard]\n");
  CHECK(finding(report, "over-budget"));
  const auto logits = finding(report, "logits-dominate");
  const auto inputs = finding(report, "layer-inputs-dominate");
  REQUIRE(logits);
  REQUIRE(inputs);
  CHECK(gb(*logits->evidence) >= 42.0);
  CHECK(gb(*inputs->evidence) >= 42.9);
}

TEST_CASE("estimate/reports: 32768 tokens of Qwen2.5-72B QLoRA do not fit one 80 GB GPU (unslothai/unsloth 2937)") {
  const Report report = checked(
      "model: {name: qwen2.5-72b}\nadapter: {type: lora, r: 16, target_modules: all-linear}\n"
      "quantization: {quant_type: nf4, double_quant: true}\n"
      "training: {seq_len: 32768, gradient_checkpointing: true, mixed_precision: bf16, loss: liger}\n"
      "cluster: {gpu: A800 SXM4 80GB}\nplans: [single]\n");
  CHECK(finding(report, "over-budget"));
  const auto inputs = finding(report, "layer-inputs-dominate");
  REQUIRE(inputs);
  CHECK(gb(*inputs->evidence) >= 42.9);
}

TEST_CASE("estimate/reports: torchrun replicates 141 GB on every rank (huggingface/transformers 30923)") {
  const Report report = checked(
      "model: {name: llama-3-70b}\nadapter: {type: lora, r: 8}\n"
      "training: {seq_len: 512, gradient_checkpointing: true, mixed_precision: bf16}\n"
      "cluster: {gpu: A100 SXM4 80GB, world_size: 8}\nplans: [ddp]\n");
  const auto base = finding(report, "float-base-unsharded");
  REQUIRE(base);
  CHECK(gb(*base->evidence) == doctest::Approx(141.1).epsilon(0.001));
  const auto over = finding(report, "over-budget");
  REQUIRE(over);
  REQUIRE(over->fix);
  CHECK(over->fix->fits);
}

TEST_CASE("estimate/reports: 4-bit weights in uint8 stay whole under FSDP2 (huggingface/accelerate 3983)") {
  const std::string text =
      "model: {name: llama-3.1-8b}\nadapter: {type: lora, r: 8}\n"
      "quantization: {quant_type: nf4, quant_storage: uint8}\n"
      "training: {seq_len: 512, mixed_precision: bf16}\ncluster: {gpu: A100 SXM4 80GB, world_size: 4}\nplans: ";
  const auto refused = finding(checked(text + "[fsdp2]\n"), "quantized-base-sharded-without-float-storage");
  REQUIRE(refused);
  CHECK(refused->severity == Severity::error);
  REQUIRE(refused->fix);
  CHECK(refused->fix->fits);
  const auto whole = finding(checked(text + "[fsdp2-local-base]\n"), "quantized-base-replicated");
  REQUIRE(whole);
  CHECK(gib(*whole->evidence) == doctest::Approx(6.98 / 2 - 0.24).epsilon(0.01));  // 6.98e9 weights in 4 bits
}

TEST_CASE("estimate/reports: 20000 tokens need checkpointing (meta-pytorch/torchtune 2078)") {
  const Report report = checked(
      "model: {name: llama-2-7b}\nadapter: {type: lora, r: 8}\n"
      "training: {seq_len: 20000, mixed_precision: bf16}\n"
      "cluster: {gpu: A100 SXM4 80GB, world_size: 2}\nplans: [fsdp2]\n");
  const auto found = finding(report, "no-gradient-checkpointing");
  REQUIRE(found);
  REQUIRE(found->fix);
  CHECK(*found->fix->saving > ByteDelta{});
  CHECK(finding(report, "over-budget"));
}

TEST_CASE("estimate/reports: 13B in float32 is 52 GB (Lightning-AI/litgpt 1280)") {
  const std::string text =
      "model: {name: llama-2-13b, dtype: float32}\nadapter: {type: lora, r: 8}\n"
      "training: {seq_len: 512, micro_batch_size: 2, gradient_checkpointing: true}\n"
      "cluster: {gpu: A100 SXM4 80GB}\nplans: [single]\n";
  const auto found = finding(checked(text), "fp32-upcast-of-frozen-base");
  REQUIRE(found);
  CHECK(gb(*found->evidence) == doctest::Approx(52.1).epsilon(0.005));
}

TEST_CASE("estimate/reports: what is reserved hides what a plan saves (hiyouga/LLaMA-Factory 493)") {
  const PeakReport at = peak(
      "model: {name: llama-2-7b}\nadapter: {type: lora, r: 8}\n"
      "training: {seq_len: 1024, micro_batch_size: 8, mixed_precision: bf16}\n"
      "cluster: {gpu: A100 SXM4 40GB, world_size: 2}\nplans: [ddp]\n");
  CHECK(at.figures.allocated < at.figures.reserved);
}

TEST_CASE("estimate/reports: unlimited gathers keep several units alive (meta-llama/llama-cookbook 41)") {
  const auto active = [](const std::string& limit) {
    const PeakReport at = peak(
        "model: {name: llama-2-7b}\nadapter: {type: lora, r: 8}\n"
        "training: {seq_len: 512, mixed_precision: \"no\"}\ncluster: {gpu: A100 SXM4 40GB, world_size: 4}\n"
        "plans: {fsdp1-full-shard: {limit_all_gathers: " +
        limit + "}}\n");
    return at.slowest ? at.slowest->active : at.figures.active;
  };
  CHECK(gb(active("false")) > gb(active("true")) + 4);  // 5 and more GB in the thread
}

TEST_CASE("estimate/reports: a unit with a trained parameter has a gradient for all (Lightning-AI/litgpt 1417)") {
  const auto found = finding(
      checked("model: {name: llama-2-7b}\nadapter: {type: lora, r: 8, dtype: bfloat16}\n"
              "training: {seq_len: 512, gradient_checkpointing: true}\ncluster: {gpu: A100 SXM4 40GB, world_size: 4}\n"
              "plans: {fsdp1-full-shard: {auto_wrap_policy: transformer_based_wrap}}\n"),
      "mixed-fsdp1-unit");
  REQUIRE(found);
  REQUIRE(found->fix);
  // A quarter of 6.5e9 elements of the layers, in 16 bits.
  CHECK(gb(Bytes{static_cast<std::uint64_t>(found->fix->saving->count())}) > 3.2);
}

TEST_CASE("estimate/reports: ZeRO-3 copies a quantized 405B to each GPU before a step is run (huggingface/peft 2016)") {
  const Report report = checked(
      "model: {name: llama-3.1-405b}\nadapter: {type: lora, r: 16}\nquantization: {quant_type: nf4}\n"
      "training: {seq_len: 512, mixed_precision: bf16, gradient_checkpointing: {use_reentrant: true}}\n"
      "cluster: {gpu: H100 SXM5 80GB, world_size: 8}\nplans: [zero3]\nstack: {transformers: 4.57.1}\n");
  CHECK(report.plans.front().ranks.front().peak.phase == "prepare");
  const auto over = finding(report, "over-budget");
  REQUIRE(over);
  CHECK(gb(*over->evidence) > 216);
  REQUIRE(over->fix);
  CHECK(gb(Bytes{static_cast<std::uint64_t>(over->fix->saving->count())}) > 100);
  CHECK(over->fix->text.find("fsdp2") != std::string::npos);
}

TEST_CASE("estimate/reports: ZeRO-3 with all offloaded takes more than its estimator's 0.49 GB (DeepSpeed 4527)") {
  const PeakReport at = peak(
      "model: {name: llama-2-7b}\n"
      "training: {seq_len: 2048, mixed_precision: bf16, gradient_checkpointing: {use_reentrant: true}}\n"
      "cluster: {gpu: A100 SXM4 40GB, world_size: 4}\nplans: {zero3: {offload_param: {device: cpu, pin_memory: true}, "
      "offload_optimizer: {device: cpu, pin_memory: true}}}\n"
      "stack: {torch: 2.8.0, transformers: 4.57.1, peft: 0.18.0, accelerate: 1.15.0, bitsandbytes: 0.50.2}\n");
  CHECK(gb(at.figures.allocated) > 2);
}

TEST_CASE("estimate/reports: bitsandbytes before 0.43.2 keeps the inputs of 4-bit layers (bitsandbytes 1270)") {
  const auto at = [](const std::string& bitsandbytes) {
    return peak(
        "model: {name: llama-2-70b}\nadapter: {type: lora, r: 8}\n"
        "quantization: {quant_type: nf4, double_quant: true}\ntraining: {seq_len: 1024, mixed_precision: bf16}\n"
        "cluster: {gpu: A100 SXM4 80GB}\nplans: [single]\n"
        "stack: {torch: 2.4.1, transformers: 4.43.3, peft: 0.12.0, accelerate: 0.33.0, bitsandbytes: " +
        bitsandbytes + "}\n");
  };
  // The inputs that nothing else keeps: those of q, k and v, of gate and up, and of down.
  const auto inputs = std::uint64_t{80} * 1024 * (8192 + 28672) * 2;
  const auto kept = static_cast<std::size_t>(Category::activations);
  CHECK(at("0.43.1").categories[kept].count() >= at("0.43.2").categories[kept].count() + inputs * 9 / 10);
}

// The figures are those that fms-acceleration has for this run (its refs/a100_80gb.csv of August 2024), of which the
// thread rounds the same.
TEST_CASE("estimate/reports: what Mistral-7B takes with LoRA and QLoRA (fms-acceleration 14)") {
  const auto measured = [](const std::string& base, const std::string& adapter, double peak, double resident) {
    const RankReport rank = ran(
        "model: {name: mistral-7b-v0.1, dtype: float16, loading: gpu}\n" + base +
        "adapter: {type: lora, r: 16, target_modules: [q_proj, k_proj, v_proj, o_proj], lora_dropout: 0.1" + adapter +
        "training: {micro_batch_size: 4, seq_len: 4096, gradient_checkpointing: {use_reentrant: true}, "
        "optimizer: adamw_torch, attn_implementation: flash_attention_2, mixed_precision: " +
        (base.empty() ? "\"no\"" : "fp16") +
        "}\ncluster: {gpu: A100 SXM4 80GB}\nplans: [single]\nstack: {torch: 2.2.2, transformers: 4.39.3, "
        "peft: 0.11.1, accelerate: 0.32.1, bitsandbytes: 0.43.1}\n");
    CHECK(gb(rank.peak.figures.allocated) == doctest::Approx(peak).epsilon(0.0001));
    CHECK(gb(rank.persistent.allocated) == doctest::Approx(resident).epsilon(0.0002));
  };
  measured("", ", autocast_adapter_dtype: false}\n", 26.109561344, 15.119705600);
  measured("quantization: {quant_type: nf4, double_quant: true}\n", "}\n", 15.860617728, 4.843499008);
}

TEST_CASE(
    "estimate/reports: a 4-bit model is whole on each GPU while ZeRO-3 loads it (huggingface/transformers 24395)") {
  const std::string model = "model: {name: llama-3.1-8b}\nadapter: {type: lora, r: 8}\n";
  const std::string rest =
      "training: {seq_len: 512, mixed_precision: bf16, gradient_checkpointing: {use_reentrant: true}}\n"
      "cluster: {gpu: A100 SXM4 80GB, world_size: 8}\n"
      "plans: {zero3: {offload_param: {device: cpu, pin_memory: true}}}\n";
  const PeakReport quantized = peak(model + "quantization: {quant_type: nf4}\n" + rest);
  CHECK(quantized.phase == "load");
  CHECK(gb(quantized.figures.allocated) > 5.5);  // 6.98e9 weights in 4 bits, their scales, 1.05e9 in 16 bits
  CHECK(quantized.figures.allocated > peak(model + rest).figures.allocated);
}

TEST_CASE("estimate/reports: a GPTQ checkpoint is not quantized again, nor sharded (hiyouga/LLaMA-Factory 2939)") {
  const Diagnostics found = refused(
      "model: {config: config.json}\nquantization: {quant_type: nf4}\nadapter: {type: lora, r: 128}\n"
      "training: {seq_len: 512}\ncluster: {gpu: RTX 4090, world_size: 2}\nplans: [fsdp1-full-shard]\n",
      R"({"model_type": "qwen2", "hidden_size": 8192, "intermediate_size": 24576, "num_hidden_layers": 80,
          "num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 152064,
          "quantization_config": {"bits": 4, "group_size": 128, "quant_method": "gptq"}})");
  CHECK(says(found, "quantized with gptq"));
  CHECK(says(found, "FSDP cannot shard"));
}

TEST_CASE("estimate/reports: a base of experts has no states to shard, but is gathered in layers (eullm/eullm 410)") {
  const std::string text =
      "model: {name: qwen3-30b-a3b}\nadapter: {type: lora, r: 64, target_modules: [q_proj, v_proj]}\n"
      "training: {seq_len: 512, mixed_precision: bf16, gradient_checkpointing: true}\n"
      "cluster: {gpu: A100 SXM4 80GB, world_size: 8}\nplans: ";
  const auto whole = finding(checked(text + "[ddp]\n"), "float-base-unsharded");
  REQUIRE(whole);
  CHECK(gb(*whole->evidence) == doctest::Approx(61).epsilon(0.005));
  const PeakReport sharded = ran(text + "[fsdp2]\n").training_peak;
  // 128 experts of three matrices each.
  const auto layer = std::uint64_t{128} * 3 * 2048 * 768 * 2;
  CHECK(sharded.categories[static_cast<std::size_t>(Category::gathered_weights)].count() >= layer);
  CHECK(gb(sharded.categories[static_cast<std::size_t>(Category::optimizer_state)]) < 0.1);
}

TEST_CASE("estimate/reports: 8-bit weights are whole on every GPU (axolotl-ai-cloud/axolotl 1129)") {
  const auto held = [](const std::string& gpus) {
    return finding(
        checked("model: {name: llama-2-7b}\nadapter: {type: lora, r: 8}\nquantization: {quant_type: int8}\n"
                "training: {seq_len: 512, mixed_precision: bf16}\ncluster: {gpu: A100 SXM4 40GB, world_size: " +
                gpus + "}\nplans: [zero3]\n"),
        "quantized-base-replicated");
  };
  REQUIRE(held("2"));
  CHECK(gb(*held("2")->evidence) == doctest::Approx(6.476).epsilon(0.001));
  CHECK(held("2")->evidence == held("4")->evidence);
  CHECK(held("2")->message == "every rank holds the 8-bit base whole");
}

TEST_CASE("estimate/reports: MXFP4 is neither trained nor quantized again (axolotl 3530, openai/gpt-oss-recipes 23)") {
  const Diagnostics found = refused(
      "model: {config: config.json}\nquantization: {quant_type: nf4}\nadapter: {type: lora, r: 8}\n"
      "training: {seq_len: 512}\ncluster: {gpu: RTX 5090}\nplans: [single]\n",
      R"({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
          "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 201088,
          "quantization_config": {"quant_method": "mxfp4"}})");
  CHECK(says(found, "the checkpoint is stored in MXFP4, and transformers quantizes no such weights again"));
  CHECK(says(found, "it cannot be trained as it is stored, and is dequantized as a whole"));
}

TEST_CASE("estimate/reports: transformers 4.38 and 4.39 make masks that cost gigabytes (transformers 30010, 29484)") {
  const auto at = [](const std::string& transformers) {
    return peak(
        "model: {name: llama-2-7b}\nadapter: {type: lora, r: 8}\n"
        "quantization: {quant_type: nf4, double_quant: true, prepare_kbit: true}\n"
        "training: {seq_len: 1280, micro_batch_size: 4, mixed_precision: fp16}\n"
        "cluster: {gpu: RTX 4090}\nplans: [single]\n"
        "stack: {torch: 2.4.1, peft: 0.12.0, accelerate: 0.33.0, bitsandbytes: 0.43.1, transformers: " +
        transformers + "}\n");
  };
  CHECK(gb(at("4.39.3").figures.allocated) > gb(at("4.43.3").figures.allocated) + 5);
}

TEST_CASE("estimate/reports: at 8192 tokens LoRA takes more than training all of TinyLlama (huggingface/peft 1514)") {
  const std::string tinyllama =
      "model: {family: llama, hidden_size: 2048, intermediate_size: 5632, num_hidden_layers: 22, "
      "num_attention_heads: 32, num_key_value_heads: 4, vocab_size: 32000, max_position_embeddings: 8192}\n"
      "training: {seq_len: 8192}\ncluster: {gpu: A100 SXM4 80GB}\nplans: [single]\n";
  const std::string adapter = "adapter: {type: lora, r: 64, target_modules: all-linear}\n";
  CHECK(peak(tinyllama + adapter).figures.allocated > peak(tinyllama).figures.allocated);
  CHECK(job(tinyllama + adapter).adapter->r == 64);
  CHECK(finding(checked(tinyllama + adapter), "adapter-activations-dominate"));
}

TEST_CASE(
    "estimate/reports: FSDP2 with offload takes less than FSDP1, and the loss most (huggingface/accelerate 3647)") {
  const std::string text =
      "model: {name: qwen2.5-32b}\ntraining: {seq_len: 20000, mixed_precision: bf16, gradient_checkpointing: true}\n"
      "cluster: {gpu: A100 SXM4 80GB, world_size: 4}\nplans: {";
  const Report newer = checked(text + "fsdp2: {cpu_offload: true}}\n");
  const PeakReport at = newer.plans.front().ranks.front().peak;
  CHECK(at.figures.reserved < peak(text + "fsdp1-full-shard: {cpu_offload: true}}\n").figures.reserved);
  const auto logits = finding(newer, "logits-dominate");
  REQUIRE(logits);
  CHECK(logits->evidence->count() >= std::uint64_t{20000} * 152064 * 10);
  REQUIRE(logits->fix);  // as torchtune did
  CHECK(logits->fix->text.find("liger") != std::string::npos);
  CHECK(gib(Bytes{static_cast<std::uint64_t>(logits->fix->saving->count())}) > 20);
}

// Not here: torchtune's NF4 tensors (torchtune 1398), base layers that a wrong list of ignored modules kept local under
// GPTQ (fms-acceleration 31), and the sizes of gpt-oss: neither format nor family is planned.

}  // namespace qlp
