// A small report by hand, with a plan of every kind: fits, fits tightly with ranks that differ, dies, cannot run.
#pragma once

#include "base/refusal.h"
#include "estimate/ledger.h"
#include "estimate/outside_terms.h"
#include "plan/gpu_catalogue.h"

namespace qlp {

inline RankReport sample_rank(std::int64_t rank, std::uint64_t reserved_mib) {
  RankReport out;
  out.rank = rank;
  const Bytes allocated{(reserved_mib - 100) << 20};
  out.peak.phase = "backward";
  out.peak.phase_label = "micro1.backward";
  out.peak.figures = {.requested = Bytes{allocated.count() - 1000},
                      .allocated = allocated,
                      .active = allocated,
                      .reserved = Bytes{reserved_mib << 20}};
  out.peak.categories[0] = Bytes{allocated.count() - 4096};
  out.peak.categories[6] = Bytes{4096};
  out.training_peak = out.peak;
  out.persistent = {
      .requested = Bytes{1000}, .allocated = Bytes{1024}, .active = Bytes{1024}, .reserved = Bytes{2097152}};
  out.persistent_categories[0] = Bytes{1024};
  out.top_tensors = {
      {Category::parameters, "bnb::quantize_4bit", "model.layers.0.mlp.up_proj", "weight", 1, Bytes{4000}, Bytes{4096}},
      {Category::parameters, "bnb::quantize_4bit", "model.layers.1.mlp.up_proj", "weight", 1, Bytes{4000}, Bytes{4096}},
      {Category::activations, "aten::mul", "model.layers.1.mlp", "", 2, Bytes{2048}, Bytes{2048}},
  };
  PhaseReport backward{.name = "micro1.backward", .phase = "backward"};
  backward.peak = out.peak.figures;
  backward.held = out.persistent;
  backward.categories = out.peak.categories;
  backward.inventory = out.top_tensors;
  PhaseReport load{.name = "load", .phase = "load"};
  load.peak = load.held = out.persistent;
  load.host_peak = Bytes{5ULL << 30};
  out.phases = {load, backward};
  return out;
}

/// Rank 0 loads 10 GiB for all, of which 2 are pinned; 8 processes of a node.
inline HostReport sample_host() {
  HostReport host;
  host.rank0 = {.phase = "load", .peak = Bytes{10ULL << 30}, .pinned = Bytes{2ULL << 30}, .mapped = Bytes{4ULL << 30}};
  host.others = HostRank{.phase = "adapter", .peak = Bytes{1ULL << 30}};
  host.processes = 8;
  host.process = Bytes{1ULL << 29};
  host.per_node = Bytes{21ULL << 30};
  host.per_node_phase = "load";
  host.page_cache = host.rank0.mapped;
  return host;
}

inline PlanReport sample_plan(const JobSpec& job, NamedPlan plan, std::vector<RankReport> ranks) {
  PlanReport out;
  out.plan = std::move(plan);
  out.ranks = std::move(ranks);
  out.outside = outside_terms(job, out.plan);
  return out;
}

inline JobSpec sample_job() {
  JobSpec job;
  job.model.name = "tiny";
  job.model.hidden_size = 64;
  job.model.intermediate_size = 128;
  job.model.num_hidden_layers = 2;
  job.model.num_attention_heads = 4;
  job.model.num_key_value_heads = 2;
  job.model.head_dim = 16;
  job.model.vocab_size = 256;
  job.model.max_position_embeddings = 512;
  job.quantization = QuantizationSpec{.double_quant = true, .quant_storage = DType::bfloat16};
  job.adapter.emplace();
  job.adapter->r = 16;
  job.adapter->all_linear = true;
  job.adapter->rank_pattern = {{"q_proj", 8}};
  job.training.seq_len = 128;
  job.training.gradient_checkpointing = GradientCheckpointing::nonreentrant;
  job.training.evaluation = EvaluationSpec{.num_samples = 100, .eval_accumulation_steps = 4};
  job.training.saves_model = true;
  job.cluster.gpu = *find_gpu("H100 SXM5 80GB");
  job.cluster.world_size = 8;
  return job;
}

/// 8 GPUs of 81082 MiB: ddp dies, fsdp2 fits tightly, fsdp2-no-reshard and single fit, fsdp1-full-shard cannot run.
inline Report sample_report() {
  Report report;
  report.job = sample_job();
  report.parameters = {.total = 1'234'567, .trainable = 4'096};
  const JobSpec& job = report.job;
  report.plans.push_back(sample_plan(job, {"single", Single{}}, {sample_rank(0, 60'000)}));
  report.plans.push_back(sample_plan(job, {"ddp", Ddp{}}, {sample_rank(0, 90'000)}));
  report.plans.push_back(sample_plan(job, {"fsdp2", Fsdp2{}}, {sample_rank(0, 78'000), sample_rank(7, 78'050)}));
  for (RankReport& rank : report.plans.back().ranks)
    rank.peak.reserved_when_limited = rank.training_peak.reserved_when_limited =
        Bytes{(77'952 + static_cast<std::uint64_t>(rank.rank)) << 20};
  report.plans.push_back(
      sample_plan(job, {"fsdp2-no-reshard", Fsdp2{.reshard_after_forward = false}}, {sample_rank(0, 70'000)}));
  PlanReport refused;
  refused.plan = {"fsdp1-full-shard", Fsdp1{}};
  refused.refusals = {refusal("fsdp1-integer-storage", "uint8 storage cannot be sharded", "quantization.quant_storage",
                              "set quant_storage to bfloat16")};
  report.plans.push_back(refused);
  report.diagnostics.push_back({.severity = Severity::note,
                                .code = "default-used",
                                .message = "lora_dropout is 0",
                                .key_path = "adapter.lora_dropout",
                                .position = {.file = "job.yaml", .line = 7, .column = 3},
                                .hint = ""});
  report.plans[3].host = sample_host();
  for (auto& plan : report.plans) {
    std::optional<bool> outcome;
    if (plan.plan.name == "fsdp2") outcome = true;
    if (plan.plan.name == "ddp") outcome = false;
    judge(plan, job.cluster, outcome);
  }
  recommend(report);
  return report;
}

}  // namespace qlp
