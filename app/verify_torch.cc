#include "app/verify_torch.h"

#include <algorithm>

#include "app/checkpoint_folder.h"
#include "app/child_process.h"
#include "app/embedded.h"
#include "app/output.h"
#include "app/program_files.h"
#include "app/stack_requirements.h"
#include "app/temporary_folder.h"
#include "app/traced_program.h"
#include "checkpoint/model_config.h"
#include "checkpoint/model_tensors.h"
#include "estimate/estimate.h"
#include "report/export_runner.h"
#include "step/load_order.h"
#include "verify/compare_peak.h"

namespace qlp::app {
namespace {

/// The interpreter that was named, else that of an environment which has the job's stack.
Result<std::string, std::string> interpreter(const std::optional<std::string>& named, const JobSpec& job) {
  if (named) return *named;
  std::vector<std::string> command{"python3", "-c", std::string(python_env_script()), "find"};
  for (const std::string& requirement : stack_requirements(job.stack)) {
    if (requirement.starts_with("deepspeed") && !std::holds_alternative<Zero>(job.plans.front().plan)) continue;
    command.emplace_back("--require");
    command.push_back(requirement);
  }
  const auto answer = run_for_answer(std::move(command));
  if (!answer) return Unexpected{answer.error()};
  if (!answer->end.succeeded())
    return Unexpected{
        std::string("no Python environment has the versions of the job's stack: make one with "
                    "qlora-plan env create, or name an interpreter with --python")};
  return answer->output.substr(0, answer->output.find('\n'));
}

void write_checkpoint(const JobSpec& job, const std::string& folder) {
  CheckpointFolder checkpoint(folder);
  const auto config = as_stored(*config_of(job.model), job.dtype, "");
  const auto files = sparse_checkpoint(**config, model_tensors(job.model, job.dtype), kCheckpointFileBytes);
  for (const TextFile& file : files.texts) checkpoint.write(file);
  for (const ShardFile& file : files.shards) checkpoint.write(file);
  checkpoint.publish();
}

RankEnd end_of(const TracedOutcome& outcome) {
  switch (outcome.report.outcome) {
    case TraceOutcome::ran:
      return RankEnd::finished;
    case TraceOutcome::out_of_memory:
      return RankEnd::out_of_memory;
    case TraceOutcome::hung:
      return RankEnd::hung;
    case TraceOutcome::failed:
      break;
  }
  constexpr int kRefused = 2;  // scripts/torch_runner.py
  return outcome.run.end.code == kRefused ? RankEnd::refused : RankEnd::died;
}

RankMeasurement measurement_of(const RankReport& traced, const GpuSpec& gpu) {
  RankMeasurement out;
  out.device.name = "null " + gpu.name;
  out.device.capacity = gpu.capacity;
  for (const PhaseReport& phase : traced.phases) out.phases.push_back({phase.name, phase.peak, phase.held});
  return out;
}

std::optional<ComparedPeak> peak_of(const RankReport& traced, const VerifyRequest& request) {
  const Report predicted = estimate(request.job, {.rank = traced.rank, .phase_inventories = true});
  const auto& phases = predicted.plans.front().ranks.front().phases;
  const auto phase = std::ranges::find(phases, traced.peak.phase_label, &PhaseReport::name);
  if (phase == phases.end()) return std::nullopt;
  return compare_peak(phase->name, traced.top_tensors, phase->inventory);
}

}  // namespace

Result<TorchRun, std::string> run_torch_rank(const VerifyArguments& arguments, const VerifyRequest& request) {
  const auto python = interpreter(arguments.python, request.job);
  if (!python) return Unexpected{python.error()};
  const auto job = runner_job(request.job, request.plan);
  if (!job) return Unexpected{job.error().front().message};
  const TemporaryFolder folder("verify");
  const std::string job_file = (folder.path() / "job.json").string(), weights = (folder.path() / "weights").string();
  write_result(job_file, *job);
  write_checkpoint(request.job, weights);

  TracedProgram program;
  program.command = {*python, program_file("torch_runner.py"), job_file, "--checkpoint", weights};
  program.cluster = request.job.cluster;
  program.cluster.margin = 0;
  const std::int64_t ranks = std::holds_alternative<Single>(request.plan.plan) ? 1 : request.job.cluster.world_size;
  program.cluster.world_size = ranks;
  program.devices = std::min(ranks, request.job.cluster.gpus_per_node);
  const std::int64_t rank = request.alone.value_or(0);
  if (ranks > 1) {
    program.played_rank = rank;
    program.request.world_size = ranks;
    program.request.rank = rank;
    program.request.gpus_per_node = request.job.cluster.gpus_per_node;
  }
  program.request.inventory = true;
  constexpr std::int64_t kPatience = 600;  // libraries take a while to be imported
  program.timeout = std::max(arguments.timeout, kPatience);
  const auto outcome = run_traced_program(std::move(program));
  if (!outcome) return Unexpected{std::string("this installation cannot trace programs")};

  TorchRun out;
  out.run.interrupted = outcome->run.how == RunEnd::interrupted;
  RankRecord record{.rank = rank, .end = end_of(*outcome)};
  record.message = outcome->report.message;
  if (record.end != RankEnd::finished) record.output = outcome->run.output;
  if (!outcome->report.ranks.empty()) {
    const TracedRank& traced = outcome->report.ranks.front();
    record.measurement = measurement_of(traced.report, request.job.cluster.gpu);
    for (const auto& [library, version] : outcome->report.versions)
      record.measurement->device.versions.emplace_back(library).append(" ").append(version);
    if (traced.has_inventory) out.peak = peak_of(traced.report, request);
  }
  out.run.ranks.push_back(std::move(record));
  return out;
}

}  // namespace qlp::app
