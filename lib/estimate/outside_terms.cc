#include "estimate/outside_terms.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "estimate/fsdp2_plan.h"
#include "estimate/parallel_rules.h"
#include "estimate/zero_plan.h"
#include "plan/fsdp1_setup.h"
#include "plan/gpu_catalogue.h"
#include "plan/stack_profile.h"

namespace qlp {
namespace {

std::string mib_text(Bytes bytes) { return std::to_string(bytes.count() >> 20) + " MiB"; }

std::string measured_with(const MachineProfile& machine) {
  std::string text = "measured on this machine";
  for (const std::string& version : machine.versions) text += ", " + version;
  return text;
}

OutsideTerm cuda_context(const ClusterSpec& cluster) {
  if (const auto& machine = cluster.machine)
    return {
        .name = "cuda_context", .bytes = machine->cuda_context, .source = measured_with(*machine), .measured = true};
  const GpuSpec& gpu = cluster.gpu;
  // Bare contexts seen: RTX 3090 256 MiB (InvokeAI#9413), A800 414 and H200 520 (Mooncake#3973), B200 616
  // (Mooncake#3434): 3.1 to 4.2 MiB for each multiprocessor.
  const bool data_centre = is_data_centre_chip(gpu.compute_capability);
  const double mib = (data_centre ? 4.0 : 3.2) * gpu.sm_count;
  return {.name = "cuda_context",
          .bytes = Bytes{static_cast<std::uint64_t>(std::llround(mib)) << 20},
          .source = std::string{data_centre ? "4" : "3.2"} + " MiB x " + std::to_string(gpu.sm_count) +
                    " multiprocessors; contexts seen in Mooncake#3973, Mooncake#3434, InvokeAI#9413"};
}

OutsideTerm library_overhead(const ClusterSpec& cluster) {
  if (const auto& machine = cluster.machine)
    return {.name = "library_overhead",
            .bytes = machine->cublas + machine->library_overhead,
            .source = "cuBLAS handles " + mib_text(machine->cublas) + " + loaded kernels " +
                      mib_text(machine->library_overhead) + "; " + measured_with(*machine),
            .measured = true};
  const GpuSpec& gpu = cluster.gpu;
  const bool data_centre = is_data_centre_chip(gpu.compute_capability);
  // 0.16 and 0.20 GiB, rounded up to a MiB.
  return {.name = "library_overhead",
          .bytes = Bytes{std::uint64_t{data_centre ? 164U : 205U} << 20},
          .source = data_centre
                        ? "cuBLAS handles and loaded kernels: 0.16 GiB beyond the context on H100 (vllm#12126)"
                        : "cuBLAS handles and loaded kernels: 0.20 GiB beyond the context on 24 GB cards (vllm#14447)"};
}

/// cusolverDnCreate, without the cuBLAS handles that it makes too: one cudaMalloc, as the libraries of 11.6.1, 11.7.1,
/// 11.7.3 and 12.0.4 make it; that of 11.4.5 makes none.
OutsideTerm cusolver_handle(const GpuSpec& gpu, CuSolver cusolver) {
  const std::uint64_t mib = cusolver == CuSolver::v11_4_5 ? 0 : gpu.compute_capability >= 90 ? 32 : 4;
  return {.name = "cusolver", .bytes = Bytes{mib << 20}, .source = "the handle's own memory (cuSOLVER 11.4 to 12.0)"};
}

/// The profile's entry for such a communicator, null where none was measured.
const MeasuredNccl* find_measured(const ClusterSpec& cluster, const CommunicatorSpec& spec) {
  if (!cluster.machine) return nullptr;
  const auto found = std::ranges::find_if(cluster.machine->nccl, [&](const MeasuredNccl& entry) {
    return entry.ranks == spec.ranks && entry.ranks_per_node == std::min(spec.ranks, spec.ranks_per_node) &&
           entry.all_reduce == spec.all_reduce;
  });
  return found == cluster.machine->nccl.end() ? nullptr : &*found;
}

/// The meshes of fully_shard. A group size to which parameters are resharded makes a mesh anew for each unit (torch
/// _fsdp_init.py, _get_post_forward_mesh_info).
std::vector<Communicators> communicators_of(const JobSpec& job, const Fsdp2& plan, const CommunicatorSpec& world) {
  std::vector<Communicators> all{{world}};
  const std::int64_t ranks = shard_ranks(job, plan), tp = job.cluster.mesh.tp;
  CommunicatorSpec shard = world;
  shard.ranks = ranks;
  shard.ranks_per_node = std::max<std::int64_t>(1, world.ranks_per_node / tp);
  if ((plan.hybrid || tp > 1) && ranks > 1) all.push_back({shard});
  if (plan.hybrid) {
    CommunicatorSpec replicas = world;
    replicas.ranks = world.ranks / tp / ranks, replicas.all_reduce = true;
    replicas.ranks_per_node = std::max<std::int64_t>(1, shard.ranks_per_node / ranks);
    all.push_back({replicas});
  }
  if (tp > 1) {
    CommunicatorSpec layers = world;
    layers.ranks = tp, layers.all_reduce = true;
    all.push_back({layers});
  }
  if (const std::int64_t ep = job.cluster.mesh.ep; ep > 1) {
    CommunicatorSpec experts = world, copies = world;
    experts.ranks = ep;
    copies.ranks = expert_share(job, plan, 0).ranks;
    copies.ranks_per_node = std::max<std::int64_t>(1, world.ranks_per_node / ep);
    all.push_back({experts});
    if (copies.ranks > 1) all.push_back({copies});
  }
  if (job.cluster.mesh.cp > 1) {
    CommunicatorSpec sequence = world;
    sequence.ranks = job.cluster.mesh.cp;
    all.push_back({sequence});
  }
  const auto* size = std::get_if<std::int64_t>(&plan.reshard_after_forward);
  if (size && *size > 1 && *size < ranks) {
    CommunicatorSpec group = world;
    group.ranks = *size;
    all.push_back({group, resharded_units(job, plan)});
  }
  return all;
}

}  // namespace

/// Beside the group of all ranks: those that have the same layers, and a rank of each stage.
std::vector<Communicators> communicators_of_stages(const JobSpec& job, const CommunicatorSpec& world) {
  CommunicatorSpec replicas = world, stages = world;
  replicas.ranks = ranks_of_stage(job);
  stages.ranks = job.cluster.mesh.pp, stages.all_reduce = true;
  stages.ranks_per_node = std::max<std::int64_t>(1, world.ranks_per_node / replicas.ranks);
  return {{world}, {replicas}, {stages}};
}

std::vector<Communicators> communicators(const JobSpec& job, const NamedPlan& plan) {
  const auto* fsdp1 = std::get_if<Fsdp1>(&plan.plan);
  CommunicatorSpec world{
      .torch = job.stack.torch,
      .ranks = ranks_of(job, plan),
      .ranks_per_node = job.cluster.gpus_per_node,
      .link = link_of(job.cluster.gpu),
      .compute_capability = job.cluster.gpu.compute_capability,
      .all_reduce = std::holds_alternative<Ddp>(plan.plan) || std::holds_alternative<Single>(plan.plan)};
  if (job.cluster.mesh.pp > 1 && !std::holds_alternative<Single>(plan.plan)) return communicators_of_stages(job, world);
  if (const auto* fsdp2 = std::get_if<Fsdp2>(&plan.plan)) return communicators_of(job, *fsdp2, world);
  if (std::holds_alternative<Zero>(plan.plan)) {
    // DeepSpeed works in a clone of the world group (utils/groups.py, _clone_world_group); the Trainer counts tokens in
    // the original.
    CommunicatorSpec clone = world;
    clone.all_reduce = true;
    return {{world}, {clone}};
  }
  if (fsdp1 == nullptr && std::holds_alternative<Single>(plan.plan) && job.cluster.mesh.ep > 1)
    return {{world}, {world}};
  if (fsdp1 == nullptr) return {{world}};
  const Fsdp1Groups groups = fsdp1_groups(*fsdp1, job.cluster);
  world.all_reduce = !groups.shards;
  if (!groups.shards || !is_hybrid(fsdp1->sharding_strategy)) return {{world}};
  // The Trainer counts tokens over all ranks, FSDP shards within a node and sums between them.
  CommunicatorSpec node = world, replicas = world;
  node.ranks = groups.ranks;
  replicas.ranks = groups.replicas, replicas.ranks_per_node = 1, replicas.all_reduce = true;
  return {{world}, {node}, {replicas}};
}

std::int64_t ranks_of(const JobSpec& job, const NamedPlan& plan) {
  return std::holds_alternative<Single>(plan.plan) ? job.cluster.mesh.ranks_of_replica() : job.cluster.world_size;
}

std::vector<OutsideTerm> device_terms(const ClusterSpec& cluster) {
  return {cuda_context(cluster), library_overhead(cluster)};
}

std::vector<OutsideTerm> outside_terms(const JobSpec& job, const NamedPlan& plan) {
  std::vector<OutsideTerm> terms = device_terms(job.cluster);
  const auto* zero = std::get_if<Zero>(&plan.plan);
  if (std::holds_alternative<GaLore>(job.training.optimizer.kind) && !(zero && zero_has_own_optimizer(*zero)))
    terms.push_back(cusolver_handle(job.cluster.gpu, StackProfile(job.stack).optimizers.behaviour().cusolver));
  if (std::holds_alternative<Single>(plan.plan) && ranks_of(job, plan) == 1) return terms;
  OutsideTerm nccl{.name = "nccl", .measured = job.cluster.machine.has_value()};
  for (const auto& [communicator, count] : communicators(job, plan)) {
    const MeasuredNccl* measured = find_measured(job.cluster, communicator);
    const CommunicatorMemory memory = measured
                                          ? CommunicatorMemory{measured->memory, measured_with(*job.cluster.machine)}
                                          : communicator_memory(communicator);
    nccl.measured = nccl.measured && measured;
    nccl.bytes += memory.bytes * static_cast<std::uint64_t>(count);
    if (!nccl.source.empty()) nccl.source += "; " + std::to_string(communicator.ranks) + " ranks: ";
    if (count > 1) nccl.source += std::to_string(count) + " times ";
    nccl.source += memory.source;
  }
  terms.push_back(std::move(nccl));
  return terms;
}

OutsideTerm paged_optimizer_state(Bytes bytes) {
  return {.name = "paged_optimizer_state",
          .bytes = bytes,
          .source =
              "managed memory (cudaMallocManaged) of bitsandbytes' paged optimizers, brought to the GPU at each "
              "step; CUDA moves to the host what finds no room",
          .managed = true};
}

Bytes sum(const std::vector<OutsideTerm>& terms) {
  Bytes total;
  for (const auto& term : terms)
    if (!term.managed) total += term.bytes;
  return total;
}

Bytes managed_sum(const std::vector<OutsideTerm>& terms) {
  Bytes total;
  for (const auto& term : terms)
    if (term.managed) total += term.bytes;
  return total;
}

}  // namespace qlp
