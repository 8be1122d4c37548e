#include "report/export_scheduler.h"

#include <optional>

#include "base/refusal.h"
#include "base/rounding.h"
#include "report/format.h"

namespace qlp {
namespace {

struct Request {
  std::string plan;
  std::string gpu;
  std::uint32_t compute_capability = 0;
  Resources need;
  std::uint64_t gpu_mib = 0;  ///< as nvidia-smi counts where that is known, else as CUDA does
  std::optional<std::uint64_t> host_mib;
};

std::uint64_t mib_of(Bytes bytes) { return round_up(bytes, 1U << 20).count() >> 20; }

/// Host memory by the processes alone: what the system keeps of files, it drops where a limit is met.
Request request_of(const Report& report) {
  const Resources& need = *report.resources;
  Request request{.plan = *report.recommended,
                  .gpu = report.job.cluster.gpu.name,
                  .compute_capability = report.job.cluster.gpu.compute_capability,
                  .need = need,
                  .gpu_mib = need.gpu_memory_mib.value_or(mib_of(need.gpu_memory)),
                  .host_mib = {}};
  if (need.host_memory_per_node) request.host_mib = mib_of(*need.host_memory_per_node);
  return request;
}

std::string remark(const Request& request) {
  return "# qlora-plan: " + request.plan + " on " + std::to_string(request.need.gpus) + " x " + request.gpu +
         ", each with at least " + std::to_string(request.gpu_mib) + " MiB\n";
}

/// One task on each node, which starts the ranks there (torchrun, accelerate launch).
std::string slurm(const Request& request) {
  std::string out = remark(request);
  out += "#SBATCH --nodes=" + std::to_string(request.need.nodes) + "\n#SBATCH --ntasks-per-node=1\n";
  out += "#SBATCH --gpus-per-node=" + std::to_string(request.need.gpus_per_node) + "\n";
  if (request.host_mib) out += "#SBATCH --mem=" + std::to_string(*request.host_mib) + "M\n";
  return out;
}

/// Gt is strict and takes whole numbers as text.
std::string kubernetes(const Request& request) {
  const std::string gpus = std::to_string(request.need.gpus_per_node);
  std::string out = remark(request);
  if (request.need.nodes > 1)
    out += "# in " + std::to_string(request.need.nodes) + " pods, each on a node of its own\n";
  out +=
      "affinity:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n      nodeSelectorTerms:\n"
      "        - matchExpressions:\n            - {key: nvidia.com/gpu.memory, operator: Gt, values: [\"" +
      std::to_string(request.gpu_mib - 1) + "\"]}\ncontainers:\n  - name: train\n    resources:\n";
  const std::string memory = request.host_mib ? ", memory: " + std::to_string(*request.host_mib) + "Mi" : "";
  if (request.host_mib) out += "      requests: {memory: " + std::to_string(*request.host_mib) + "Mi}\n";
  out += "      limits: {nvidia.com/gpu: " + gpus + memory + "}\n";
  return out;
}

std::string htcondor(const Request& request) {
  std::string out = remark(request);
  if (request.need.nodes > 1) out += "machine_count = " + std::to_string(request.need.nodes) + "\n";
  out += "request_gpus = " + std::to_string(request.need.gpus_per_node) + "\n";
  out += "gpus_minimum_memory = " + std::to_string(request.gpu_mib) + "\n";
  out += "gpus_minimum_capability = " + compute_capability_text(request.compute_capability) + "\n";
  if (request.host_mib) out += "request_memory = " + std::to_string(*request.host_mib) + "\n";
  return out;
}

}  // namespace

Result<std::string> scheduler_request(Scheduler scheduler, const Report& report) {
  if (!report.resources)
    return Unexpected{
        Diagnostics{refusal("does-not-fit", report.plans.front().plan.name + " does not fit on the GPUs of the job",
                            "plans", "ask `search` how far it can go")}};
  const Request request = request_of(report);
  switch (scheduler) {
    case Scheduler::slurm:
      return slurm(request);
    case Scheduler::kubernetes:
      return kubernetes(request);
    case Scheduler::htcondor:
      break;
  }
  return htcondor(request);
}

}  // namespace qlp
