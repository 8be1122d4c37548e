#include "report/step_text.h"

#include <algorithm>

#include "base/text.h"
#include "estimate/communication.h"
#include "estimate/step_time.h"
#include "report/format.h"

namespace qlp {
namespace {

void add_row(TextTable& table, const std::string& phase, const std::string& times, const TimeTerms& terms,
             double bound) {
  table.add({{phase},
             {times},
             {three_digits(terms.compute)},
             {three_digits(terms.memory)},
             {three_digits(terms.communication)},
             {three_digits(terms.host_copies)},
             {three_digits(bound)}});
}

/// "compute 0.81 s = 8.05e+14 operations in bfloat16 / 989 TFLOP/s"
std::string compute_line(const StepTime& time, const GpuRates& rates, bool tf32) {
  std::string sum;
  for (const DTypeInfo& row : kDTypes) {
    const double operations = time.operations[static_cast<std::size_t>(row.dtype)];
    if (operations == 0) continue;
    sum += (sum.empty() ? "" : " + ") + three_digits(operations) + " operations in " + std::string{row.name} +
           (tf32 && row.dtype == DType::float32 ? " (tf32) / " : " / ") +
           three_digits(flops_of(row.dtype, rates, tf32) / 1e12) + " TFLOP/s";
  }
  return "compute " + three_digits(time.terms.compute) + " s = " + sum;
}

std::string terms_text(const StepTime& time, const JobSpec& job, bool colors) {
  std::string out = "optimizer step: at least " + three_digits(time.lower_bound) +
                    " s, if in each phase all but the longest term is hidden\n";
  TextTable table{{"phase", "times", "compute s", "memory s", "communication s", "host copies s", "at least s"}, 1};
  for (const PhaseTime& phase : time.phases)
    add_row(table, phase.phase, std::to_string(phase.times), phase.terms, phase.terms.longest());
  add_row(table, "step", "", time.terms, time.lower_bound);
  out += table.text(colors);
  const GpuRates& rates = job.cluster.gpu.rates;
  out += wrapped(compute_line(time, rates, job.training.tf32), 2) + "\n";
  out += wrapped("memory " + three_digits(time.terms.memory) + " s = " + gib(time.memory) + " GiB / " +
                     three_digits(rates.memory_bytes / 1e9) +
                     " GB/s: weights are read in every pass, gradients written; the optimizer reads these and reads "
                     "and writes its state and parameters",
                 2) +
         "\n";
  return out;
}

std::string collectives_text(const Communication& communication, const ClusterSpec& cluster, bool colors) {
  TextTable table{{"collective", "mesh axis", "ranks", "nodes", "count", "payload MiB", "sent MiB", "at least s"}, 2};
  double sum = 0;
  for (const CollectiveTotal& total : communication.collectives) {
    const double least = least_seconds({total.kind, total.group, total.payload.count()}, cluster);
    sum += least;
    table.add({{std::string{name_of(total.kind)}},
               {std::string{name_of(total.group.axis)}},
               {std::to_string(total.group.size)},
               {std::to_string(layout_of(total.group, cluster.gpus_per_node).nodes)},
               {std::to_string(total.count)},
               {mib(total.payload)},
               {mib(total.sent)},
               {three_digits(least)}});
  }
  table.add({{"sum"}, {}, {}, {}, {}, {}, {mib(communication.sent)}, {three_digits(sum)}});
  const std::int64_t on_node = std::min(cluster.world_size, cluster.gpus_per_node);
  return table.text(colors) + "links of a GPU: " + three_digits(intra_node_bandwidth(cluster, on_node) / 1e9) +
         " GB/s in one direction within a node" +
         (cluster.world_size > on_node ? ", " + exact_rate(cluster.inter_node_bandwidth) + " between nodes" : "") +
         "\n";
}

}  // namespace

std::string step_text(const PlanReport& plan, const JobSpec& job, bool colors) {
  std::string out;
  if (plan.step_time) out += terms_text(*plan.step_time, job, colors);
  const Communication& communication = plan.communication;
  if (!communication.collectives.empty()) out += "\n" + collectives_text(communication, job.cluster, colors);
  return out;
}

}  // namespace qlp
