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

/// The job under its only plan.
Report checked(const std::string& text) {
  const JobSpec spec = job(text);
  return check(spec, spec.plans.front());
}

std::optional<Finding> finding(const Report& report, std::string_view code) {
  const auto found = std::ranges::find(*report.findings, code, &Finding::code);
  return found == report.findings->end() ? std::nullopt : std::optional{*found};
}

PeakReport peak(const std::string& text) {
  const Report report = estimate(job(text));
  REQUIRE(report.plans.front().applicable());
  return report.plans.front().ranks.front().peak;
}

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

TEST_CASE("estimate/reports: ZeRO-3 copies a quantized 405B to each GPU as it loads (huggingface/peft 2016)") {
  const Report report = checked(
      "model: {name: llama-3.1-405b}\nadapter: {type: lora, r: 16}\nquantization: {quant_type: nf4}\n"
      "training: {seq_len: 512, mixed_precision: bf16, gradient_checkpointing: {use_reentrant: true}}\n"
      "cluster: {gpu: H100 SXM5 80GB, world_size: 8}\nplans: [zero3]\n");
  CHECK(report.plans.front().ranks.front().peak.phase == "load");
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

}  // namespace qlp
