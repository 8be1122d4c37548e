#include "estimate/step_time.h"

#include <algorithm>

#include "estimate/communication.h"

namespace qlp {
namespace {

/// An unknown rate bounds nothing.
double seconds(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

bool sums_in_switch(const GpuSpec& gpu) { return gpu.compute_capability >= 90 && gpu.rates.nvlink_gpus >= 8; }

TimeTerms terms_of(const PhaseWork& work, const ClusterSpec& cluster, bool tf32) {
  const GpuRates& rates = cluster.gpu.rates;
  TimeTerms terms;
  for (const DTypeInfo& row : kDTypes)
    terms.compute += seconds(work.operations[static_cast<std::size_t>(row.dtype)], flops_of(row.dtype, rates, tf32));
  terms.memory = seconds(static_cast<double>(work.memory_bytes), rates.memory_bytes);
  for (const CollectiveEvent& event : work.collectives) terms.communication += least_seconds(event, cluster);
  const std::uint64_t copied = std::max(work.host_to_device_bytes, work.device_to_host_bytes);
  terms.host_copies = seconds(static_cast<double>(copied), rates.pcie_bytes);
  return terms;
}

/// What crosses the busiest GPU's link to the others of its node, and its port to other nodes.
struct Load {
  double within = 0;
  double between = 0;
};

Load load_of(const CollectiveEvent& event, const GroupLayout& layout, const GpuSpec& gpu) {
  const auto whole = static_cast<double>(event.bytes);
  const auto sent = [&](std::int64_t ranks) { return static_cast<double>(sent_bytes(event.kind, ranks, event.bytes)); };
  const auto ranks = static_cast<double>(layout.ranks_on_node), nodes = static_cast<double>(layout.nodes);
  switch (event.kind) {
    case Collective::send:
    case Collective::recv:  // of a neighbour, which is on the same node if any rank is
      return layout.ranks_on_node > 1 ? Load{sent(2), 0} : Load{0, sent(2)};
    case Collective::all_to_all:
      return {whole * (ranks - 1) / (ranks * nodes), whole * (nodes - 1) / nodes};
    case Collective::all_reduce:
      if (sums_in_switch(gpu) && layout.ranks_on_node > 1)
        return {std::min(sent(layout.ranks_on_node), whole), sent(layout.nodes) / ranks};
      break;
    default:
      break;
  }
  return {sent(layout.ranks_on_node), sent(layout.nodes) / ranks};
}

void add(TimeTerms& sum, const TimeTerms& terms, double times) {
  sum.compute += times * terms.compute;
  sum.memory += times * terms.memory;
  sum.communication += times * terms.communication;
  sum.host_copies += times * terms.host_copies;
}

}  // namespace

/// Products of 8-bit integers: two to four times as fast, as these are not held back where 16-bit ones that add up in
/// float32 are (GeForce; datasheets): the greatest, as times that follow are lower bounds.
constexpr double kIntegers = 4;

double flops_of(DType dtype, const GpuRates& rates, bool tf32) {
  if (dtype == DType::bfloat16) return rates.bf16_flops;
  if (dtype == DType::float16) return rates.fp16_flops;
  if (dtype == DType::int8) return kIntegers * rates.fp16_flops;
  return dtype == DType::float32 && tf32 ? rates.tf32_flops : rates.fp32_flops;
}

double intra_node_bandwidth(const ClusterSpec& cluster, std::int64_t gpus) {
  if (cluster.intra_node_bandwidth) return static_cast<double>(cluster.intra_node_bandwidth->count());
  const GpuRates& rates = cluster.gpu.rates;
  return gpus <= static_cast<std::int64_t>(rates.nvlink_gpus) ? rates.nvlink_bytes : rates.pcie_bytes;
}

double least_seconds(const CollectiveEvent& event, const ClusterSpec& cluster) {
  const GroupLayout layout = layout_of(event.group, cluster.gpus_per_node);
  const Load load = load_of(event, layout, cluster.gpu);
  const double link = intra_node_bandwidth(cluster, layout.ranks_on_node * event.group.stride);
  const auto port = static_cast<double>(cluster.inter_node_bandwidth.count());
  return std::max(seconds(load.within, link), seconds(load.between, port));
}

std::optional<StepTime> step_time(const std::vector<StepPhase>& step, const ClusterSpec& cluster, bool tf32) {
  if (cluster.gpu.rates == GpuRates{}) return std::nullopt;
  StepTime time;
  for (const StepPhase& phase : step) {
    PhaseTime entry{.phase = phase.phase, .times = phase.times, .terms = terms_of(phase.work, cluster, tf32)};
    const auto times = static_cast<double>(entry.times);
    time.lower_bound += times * entry.terms.longest();
    add(time.terms, entry.terms, times);
    for (std::size_t i = 0; i < time.operations.size(); ++i) time.operations[i] += times * phase.work.operations[i];
    time.memory += Bytes{phase.work.memory_bytes} * static_cast<std::uint64_t>(phase.times);
    if (entry.terms == TimeTerms{}) continue;
    const auto alike = std::ranges::find_if(
        time.phases, [&](const PhaseTime& other) { return other.phase == entry.phase && other.terms == entry.terms; });
    if (alike == time.phases.end())
      time.phases.push_back(std::move(entry));
    else
      alike->times += entry.times;
  }
  return time;
}

}  // namespace qlp
