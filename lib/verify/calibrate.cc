#include "verify/calibrate.h"

#include <algorithm>
#include <tuple>

#include "verify/device_books.h"

namespace qlp {
namespace {

auto kind_of(const MeasuredNccl& entry) { return std::tuple(entry.ranks, entry.ranks_per_node, entry.all_reduce); }

/// Keeps the larger where there already is such a communicator.
void add(std::vector<MeasuredNccl>& entries, const MeasuredNccl& entry) {
  const auto same = std::ranges::find(entries, kind_of(entry), kind_of);
  if (same == entries.end())
    entries.push_back(entry);
  else
    same->memory = std::max(same->memory, entry.memory);
}

}  // namespace

Result<MachineProfile, std::string> calibrate(const std::vector<RankMeasurement>& ranks,
                                              const std::optional<MachineProfile>& before) {
  MachineProfile profile;
  for (const RankMeasurement& rank : ranks) {
    if (!rank.device.capacity || rank.readings.empty())
      return Unexpected{rank.device.name + " keeps no books: a machine is calibrated on its GPUs"};
    if (!profile.gpu.empty() && profile.gpu != rank.device.name)
      return Unexpected{"the GPUs differ: " + profile.gpu + " and " + rank.device.name};
    const DeviceBooks books = device_books(rank);
    Bytes libraries = books.libraries;
    libraries.remove(books.cublas);
    profile.gpu = rank.device.name;
    profile.versions = rank.device.versions;
    profile.capacity =
        profile.capacity == Bytes{} ? *rank.device.capacity : std::min(profile.capacity, *rank.device.capacity);
    profile.cuda_context = std::max(profile.cuda_context, books.context);
    profile.cublas = std::max(profile.cublas, books.cublas);
    profile.library_overhead = std::max(profile.library_overhead, libraries);
    for (const MeasuredCommunicator& c : rank.communicators)
      add(profile.nccl, {c.ranks, c.ranks_per_node, c.all_reduce, c.bytes});
  }
  if (ranks.empty()) return Unexpected{std::string{"no rank has measured anything"}};
  if (before) {
    if (before->gpu != profile.gpu)
      return Unexpected{"the profile is of another GPU, " + before->gpu + ", and this is " + profile.gpu};
    if (before->versions == profile.versions)
      for (const MeasuredNccl& entry : before->nccl)
        if (std::ranges::find(profile.nccl, kind_of(entry), kind_of) == profile.nccl.end())
          profile.nccl.push_back(entry);
  }
  std::ranges::sort(profile.nccl, {}, kind_of);
  return profile;
}

}  // namespace qlp
