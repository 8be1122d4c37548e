#include "verify/gpu_rank.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "estimate/can_compute.h"
#include "estimate/dry_run.h"
#include "estimate/outside_terms.h"
#include "memory/out_of_memory.h"
#include "shard/loopback_communicator.h"
#include "shard/zero_loss_scale.h"
#include "tensor/cpu_kernels.h"
#include "tensor/streams.h"
#include "verify/counted_segments.h"
#include "verify/device_books.h"
#include "verify/gpu.h"
#include "verify/measure.h"
#include "verify/peak_sampler.h"

namespace qlp {
namespace {

/// The launcher is gone: nobody waits for the end of this.
struct LauncherGone {};

std::string sentences(const Diagnostics& refusals) {
  std::string out;
  for (const Diagnostic& refusal : refusals) out += (out.empty() ? "" : "; ") + refusal.message;
  return out;
}

/// The groups of ranks that talk to each other in this run, in an order that all ranks find.
std::vector<RankGroup> groups_of(const DryRun& predicted, std::int64_t world_size) {
  std::vector<RankGroup> groups{{MeshAxis::world, world_size, 1}};
  for (const PhaseWork& phase : predicted.work)
    for (const CollectiveEvent& event : phase.collectives) {
      const auto same = [&](const RankGroup& g) {
        return g.size == event.group.size && g.stride == event.group.stride;
      };
      if (event.group.size > 1 && std::ranges::none_of(groups, same)) groups.push_back(event.group);
    }
  std::ranges::sort(groups.begin() + 1, groups.end(), {},
                    [](const RankGroup& g) { return std::pair(g.size, g.stride); });
  return groups;
}

class GpuRank {
 public:
  GpuRank(const VerifyRequest& request, const GpuRankOptions& options, RankChannel& channel)
      : request_(request), options_(options), channel_(channel) {}

  RankMeasurement run() {
    say("start");
    auto opened = open_gpu(options_.library, {.clock = options_.clock, .host_kernels = &host_kernels_});
    if (!opened) throw GpuFailure(opened.error());
    gpu_ = std::move(*opened);
    segments_.emplace(gpu_->segments());
    describe();
    read(reading_point::kContext);
    gpu_->warm_up();
    read(reading_point::kCublas);
    const JobSpec& job = request_.job;
    const DryRun predicted = value_of(dry_run(job, request_.plan.plan, options_.rank));
    parts_ = predicted.timeline.phases().size();
    connect(predicted);
    // The null GPU is done with everything at once, as in the prediction.
    const auto events =
        request_.device == VerifyDevice::null ? EventPolicy::ready_at_once : EventPolicy::at_synchronize;
    Machine machine{.source = &*segments_, .compute = gpu_->compute(), .events = events};
    machine.even_routing = job.cluster.mesh.ep > 1;  // as predicted
    machine.compute.answers = request_.device != VerifyDevice::null;
    if (loopback_) machine.compute.communicator = &*loopback_;
    machine.on_phase = [this](const std::string& phase) { begin(phase); };
    PeakSampler sampler([this] { return gpu_->memory().used; }, std::chrono::milliseconds{1});
    const DryRun done = value_of(run_rank(job, request_.plan.plan, options_.rank, RunExtent::whole, machine));
    RankMeasurement measured = measurement_of(done, options_.rank);
    measured_.readings.push_back({reading_point::kSampledPeak, sampler.stop(), segments_->held(), {}, kSource});
    measured.device = std::move(measured_.device), measured.readings = std::move(measured_.readings);
    measured.communicators = std::move(measured_.communicators);
    say("disconnect");
    gpu_->disconnect();
    return measured;
  }

 private:
  static constexpr const char* kSource = "cudaMemGetInfo";

  void say(const std::string& what) {
    if (!channel_.tell(RankState{.what = what, .done = said_++, .of = static_cast<std::int64_t>(parts_)}))
      throw LauncherGone{};
  }

  static DryRun value_of(Result<DryRun> run) {
    if (!run) throw run.error();
    return std::move(*run);
  }

  void describe() {
    const GpuFacts& facts = gpu_->facts();
    measured_.device.name = facts.name;
    measured_.device.capacity = facts.capacity;
    measured_.device.versions = facts.versions;
    measured_.device.used_by_others = gpu_->memory().by_others;
  }

  void read(const std::string& point) {
    const GpuMemory memory = gpu_->memory();
    measured_.readings.push_back({point, memory.used, segments_->held(), memory.by_process, kSource});
  }

  void begin(const std::string& phase) {
    for (const char* step : {"step1", "step2"})
      if (phase_ == std::string(step) + ".zero_grad") read(step);
    phase_ = phase;
    say(phase);
  }

  void connect(const DryRun& predicted) {
    const std::int64_t ranks = ranks_of(request_.job, request_.plan);
    if (ranks == 1) return;
    if (request_.alone) {
      loopback_.emplace(*gpu_->compute().kernels, options_.rank);
      return;
    }
    say("rendezvous");
    const Bytes before = gpu_->memory().used;
    if (options_.rank == 0 && !channel_.tell(Rendezvous{gpu_->make_rendezvous()})) throw LauncherGone{};
    const auto rendezvous = channel_.wait_for_rendezvous(options_.timeout);
    if (!rendezvous) throw CommunicatorFailure(rendezvous.error());
    const std::vector<RankGroup> groups = groups_of(predicted, ranks);
    gpu_->connect({options_.rank, ranks, rendezvous->id, groups, options_.timeout});
    read(reading_point::kNccl);
    const bool reduces = reduces_over_all();
    for (const RankGroup& group : groups) first_collective(group, reduces);
    read(reading_point::kFirstCollective);
    // Where there are several, nobody can tell what each took.
    Bytes after = gpu_->memory().used;
    if (groups.size() == 1 && before <= after)
      measured_.communicators.push_back({.ranks = ranks,
                                         .ranks_per_node = std::min(ranks, request_.job.cluster.gpus_per_node),
                                         .all_reduce = reduces,
                                         .bytes = after.remove(before)});
  }

  /// Whether the plan's communicator of all ranks is one that reduces: NCCL then takes more.
  bool reduces_over_all() const {
    const auto planned = communicators(request_.job, request_.plan);
    return std::ranges::any_of(planned, [&](const Communicators& some) {
      return some.spec.ranks == ranks_of(request_.job, request_.plan) && some.spec.all_reduce;
    });
  }

  /// Connects the ranks of a group, which NCCL does with their first collective of a kind.
  void first_collective(const RankGroup& group, bool reduces) {
    const Compute compute = gpu_->compute();
    if (reduces) return compute.communicator->barrier(group);
    const std::uint64_t bytes = static_cast<std::uint64_t>(group.size) * sizeof(float);
    const auto address = segments_->allocate(bytes);
    if (!address) throw DeviceFull("taking memory for a first collective: out of memory");
    auto* const all = reinterpret_cast<float*>(*address);  // NOLINT(performance-no-int-to-ptr): that it is
    compute.communicator->all_gather(0, group, all, all + place_in(group, options_.rank), 1, DType::float32);
    compute.streams->synchronize();
    segments_->release(*address, bytes);
  }

  const VerifyRequest& request_;
  const GpuRankOptions& options_;
  RankChannel& channel_;
  CpuKernels host_kernels_;
  std::unique_ptr<Gpu> gpu_;
  std::optional<CountedSegments> segments_;
  std::optional<LoopbackCommunicator> loopback_;
  RankMeasurement measured_;
  std::string phase_;
  std::int64_t said_ = 0;
  std::size_t parts_ = 0;
};

}  // namespace

bool run_gpu_rank(const VerifyRequest& request, const GpuRankOptions& options, RankChannel& channel) {
  const auto fail = [&](RankEnd end, const std::string& message) {
    channel.tell(RankFailure{end, message});
    return false;
  };
  try {
    if (!channel.tell(RankHello{options.rank})) return false;
    if (auto refusals = check_can_compute(request.job, request.plan.plan); !refusals.empty()) throw refusals;
    return channel.tell(GpuRank(request, options, channel).run());
  } catch (const LauncherGone&) {
    return false;
  } catch (const Diagnostics& refusals) {
    return fail(RankEnd::refused, sentences(refusals));
  } catch (const OutOfMemory& error) {
    return fail(RankEnd::out_of_memory, error.what());
  } catch (const DeviceFull& error) {
    return fail(RankEnd::out_of_memory, error.what());
  } catch (const std::bad_alloc&) {
    return fail(RankEnd::out_of_memory, "the host has no memory left");
  } catch (const TrainingStopped& error) {
    return fail(RankEnd::refused, error.what());
  } catch (const CommunicatorFailure& error) {
    return fail(RankEnd::communicator_failed, error.what());
  } catch (const GpuFailure& error) {
    return fail(RankEnd::device_failed, error.what());
  }
}

}  // namespace qlp
