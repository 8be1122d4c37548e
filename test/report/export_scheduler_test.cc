#include "report/export_scheduler.h"

#include <doctest/doctest.h>

#include "report/sample_report.h"

using namespace qlp;

namespace {

/// Two nodes of eight GPUs.
Report report_on_two_nodes() {
  Report report = sample_report();
  report.resources->gpus = 16;
  report.resources->nodes = 2;
  report.resources->gpus_per_node = 8;
  report.resources->gpu_memory = Bytes{(std::uint64_t{70000} << 20) + 1};
  report.resources->gpu_memory_mib = 70559;
  report.resources->host_memory_per_node = Bytes{(std::uint64_t{21} << 30) - 5};
  return report;
}

}  // namespace

TEST_CASE("report/export_scheduler: Slurm's lines") {
  CHECK(*scheduler_request(Scheduler::slurm, report_on_two_nodes()) ==
        R"(# qlora-plan: fsdp2-no-reshard on 16 x H100 SXM5 80GB, each with at least 70559 MiB
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --mem=21504M
)");
}

TEST_CASE("report/export_scheduler: a pod's parts, by the label that is strictly less") {
  CHECK(*scheduler_request(Scheduler::kubernetes, report_on_two_nodes()) ==
        R"(# qlora-plan: fsdp2-no-reshard on 16 x H100 SXM5 80GB, each with at least 70559 MiB
# in 2 pods, each on a node of its own
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - {key: nvidia.com/gpu.memory, operator: Gt, values: ["70558"]}
containers:
  - name: train
    resources:
      requests: {memory: 21504Mi}
      limits: {nvidia.com/gpu: 8, memory: 21504Mi}
)");
}

TEST_CASE("report/export_scheduler: HTCondor asks for memory of GPUs; what is not known is not asked for") {
  Report report = report_on_two_nodes();
  report.resources->nodes = 1, report.resources->gpus = 8;
  report.resources->host_memory_per_node.reset();
  report.resources->gpu_memory_mib.reset();
  CHECK(*scheduler_request(Scheduler::htcondor, report) ==
        R"(# qlora-plan: fsdp2-no-reshard on 8 x H100 SXM5 80GB, each with at least 70001 MiB
request_gpus = 8
gpus_minimum_memory = 70001
gpus_minimum_capability = 9.0
)");
}

TEST_CASE("report/export_scheduler: what does not fit is not requested") {
  Report report = sample_report();
  report.recommended.reset();
  report.resources.reset();
  const auto refused = scheduler_request(Scheduler::slurm, report);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "does-not-fit");
}
