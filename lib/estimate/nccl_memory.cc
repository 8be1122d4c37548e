#include "estimate/nccl_memory.h"

#include <algorithm>

#include "plan/gpu_catalogue.h"

namespace qlp {
namespace {

// All figures in MiB. NCCL's allocations take 2 MiB granules since 2.19 (src/include/alloc.h, cuMem).
// One channel's connection to a neighbour and back: LL + LL128 + Simple buffers on the receiving side, a granule on the
// sending one (src/transport/p2p.cc, src/include/device.h; 2.18 to 2.30).
constexpr std::uint64_t kConnection = 10 + 2;
// Small arrays per channel, three of them, and a fourth with NVLS (src/channel.cc).
constexpr std::uint64_t kChannel = 6;
constexpr std::uint64_t kChannelWithNvls = 8;
// Communicator-wide arrays, a granule each.
constexpr std::uint64_t kCommunicator = 4;
// Channels: 24 with NVLink switches, 32 set up since point-to-point rounds up to a power of two; 2 to 4 over PCIe.
constexpr std::uint64_t kNvlinkChannels = 24;
constexpr std::uint64_t kNvlinkChannelsSetUp = 32;
constexpr std::uint64_t kPcieChannels = 4;
// Buffers for sends over the network, set up for every communicator before 2.22: channels x 16 x 512 KiB within NVLink,
// 128 KiB otherwise (src/transport/net.cc, src/init.cc).
constexpr std::uint64_t kNetworkPool = kNvlinkChannelsSetUp * 16 / 2;
constexpr std::uint64_t kNetworkPoolPcie = kNetworkPool / 4;
// One rank alone, torchrun on one GPU: 484 MiB seen without the network pool (NVIDIA/nccl#2366).
constexpr std::uint64_t kOneRank = 484;

/// NCCL by the torch that brings it (pytorch .github/scripts/generate_binary_build_matrix.py): 2.20 with
/// torch 2.4, 2.21 with 2.5 and 2.6, 2.26 with 2.7. From 2.22 on an algorithm's buffers are made at its first use.
enum class NcclEra : std::uint8_t { up_to_2_20, at_2_21, from_2_22 };

NcclEra era_of(const Version& torch) {
  if (torch >= Version{2, 7, 0}) return NcclEra::from_2_22;
  return torch >= Version{2, 5, 0} ? NcclEra::at_2_21 : NcclEra::up_to_2_20;
}

/// NVLink SHARP's buffers (src/transport/nvls.cc): channels x 2 x buffer, for each GPU of the node.
std::uint64_t nvls_mib(NcclEra era, const CommunicatorSpec& spec, std::uint64_t heads, bool one_node) {
  switch (era) {
    case NcclEra::up_to_2_20:
      return kNvlinkChannels * 2 * (4 + 2) * heads;
    case NcclEra::at_2_21:
      return kNvlinkChannels * 2 * (1 + 2) * heads;
    case NcclEra::from_2_22:
      break;
  }
  if (spec.compute_capability < 100) return 2 * heads * 16 + 2;
  return 2 * heads * (one_node ? 24 : 32);
}

}  // namespace

GpuLink link_of(const GpuSpec& gpu) {
  if (const GpuRow* row = find_gpu_row(gpu.name)) {
    if (row->name.starts_with("GeForce")) return GpuLink::host_memory;  // no peer access in the stock driver
    // A bridge joins pairs of PCIe cards; more of them talk over PCIe.
    const bool bridge =
        row->name.find("PCIe") != std::string_view::npos || row->name.find("NVL") != std::string_view::npos;
    return row->nvlink_gb_s >= 300 && !bridge ? GpuLink::nvlink : GpuLink::pcie;
  }
  return is_data_centre_chip(gpu.compute_capability) ? GpuLink::nvlink : GpuLink::pcie;
}

CommunicatorMemory communicator_memory(const CommunicatorSpec& spec) {
  if (spec.ranks <= 1) return {Bytes{kOneRank << 20}, "one rank under torchrun, as measured in NVIDIA/nccl#2366"};
  const NcclEra era = era_of(spec.torch);
  const auto heads = static_cast<std::uint64_t>(std::min(spec.ranks, spec.ranks_per_node));
  const bool one_node = spec.ranks <= spec.ranks_per_node;
  const bool nvlink = spec.link == GpuLink::nvlink;
  // NVLS exists from Hopper on, with more than two GPUs; across nodes only an all_reduce uses it.
  const bool nvls = nvlink && spec.compute_capability >= 90 && spec.compute_capability < 120 && heads > 2;
  const bool nvls_used = nvls && (one_node || spec.all_reduce || era != NcclEra::from_2_22);
  const std::uint64_t channels = nvlink ? kNvlinkChannels : kPcieChannels;
  const std::uint64_t set_up = nvlink ? kNvlinkChannelsSetUp : kPcieChannels;

  std::uint64_t mib = 0;
  std::string terms;
  const auto add = [&](const std::string& what, std::uint64_t amount) {
    mib += amount;
    terms += (terms.empty() ? "" : " + ") + what + " " + std::to_string(amount) + " MiB";
  };
  add(std::to_string(set_up) + " channels", set_up * (nvls ? kChannelWithNvls : kChannel) + kCommunicator);
  if (spec.link != GpuLink::host_memory) {
    add("ring", channels * kConnection);
    // Rings alone gather and scatter; an all_reduce uses trees too. Before 2.22 all is connected at once.
    if (spec.all_reduce || era != NcclEra::from_2_22) add("trees", channels * kConnection);
  }
  if (nvls_used) add("NVLS", nvls_mib(era, spec, heads, one_node));
  if (era != NcclEra::from_2_22) add("network pool", nvlink ? kNetworkPool : kNetworkPoolPcie);
  const std::string_view release = era == NcclEra::from_2_22 ? "2.22 and later" : "before 2.22";
  return {Bytes{mib << 20}, terms + "; NCCL source, releases " + std::string{release}};
}

}  // namespace qlp
