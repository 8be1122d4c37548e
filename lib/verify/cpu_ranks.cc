#include "verify/cpu_ranks.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>

#include "estimate/cpu_run.h"
#include "estimate/ledger.h"
#include "estimate/outside_terms.h"
#include "memory/out_of_memory.h"
#include "shard/zero_loss_scale.h"
#include "verify/measure.h"

namespace qlp {
namespace {

/// The records of ranks that run at once.
class Records {
 public:
  Records(const std::vector<std::int64_t>& ranks, const std::function<void(const RankRecord&)>& on_state)
      : on_state_(on_state) {
    for (const std::int64_t rank : ranks) records_.push_back({.rank = rank});
  }

  void begin(std::int64_t rank, const std::string& phase) {
    const std::lock_guard lock(mutex_);
    RankRecord& record = of(rank);
    record.state = {.what = phase, .done = record.state.done + 1};
    on_state_(record);
  }

  void fail(std::int64_t rank, RankEnd end, const std::string& message) {
    const std::lock_guard lock(mutex_);
    of(rank).end = end, of(rank).message = message;
  }

  std::vector<RankRecord>& all() { return records_; }

 private:
  RankRecord& of(std::int64_t rank) { return *std::ranges::find(records_, rank, &RankRecord::rank); }

  std::mutex mutex_;
  std::vector<RankRecord> records_;
  const std::function<void(const RankRecord&)>& on_state_;
};

/// What a rank threw, where it is an answer.
void record_failure(Records& records, std::int64_t rank, const std::exception_ptr& mistake) {
  try {
    std::rethrow_exception(mistake);
  } catch (const OutOfMemory& error) {
    records.fail(rank, RankEnd::out_of_memory, error.what());
  } catch (const std::bad_alloc&) {
    records.fail(rank, RankEnd::out_of_memory, "the host has no memory left");
  } catch (const TrainingStopped& error) {
    records.fail(rank, RankEnd::refused, error.what());
  } catch (...) {  // run_on_cpu throws it again
  }
}

CpuRunOptions options_for(const VerifyRequest& request, Records& records) {
  CpuRunOptions options;
  options.alone = request.alone;
  options.even_routing = request.job.cluster.mesh.ep > 1;
  options.memory = allocator_limit(request.job.cluster, outside_terms(request.job, request.plan)).count();
  options.on_phase = [&records](std::int64_t rank, const std::string& phase) { records.begin(rank, phase); };
  options.on_failure = [&records](std::int64_t rank, const std::exception_ptr& mistake) {
    record_failure(records, rank, mistake);
  };
  return options;
}

std::string sentence(const Diagnostics& refusals) {
  std::string out;
  for (const Diagnostic& refusal : refusals)
    out += (out.empty() ? "" : "; ") + refusal.message + (refusal.hint.empty() ? "" : " (" + refusal.hint + ")");
  return out;
}

}  // namespace

SupervisedRun run_cpu_ranks(const VerifyRequest& request, const std::function<void(const RankRecord&)>& on_state) {
  const std::vector<std::int64_t> ranks = ranks_of(request);
  Records records(ranks, on_state);
  try {
    const auto runs = run_on_cpu(request.job, request.plan.plan, options_for(request, records));
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      RankRecord& record = records.all()[i];
      if (!runs) {
        records.fail(record.rank, RankEnd::refused, sentence(runs.error()));
        continue;
      }
      record.end = RankEnd::finished;
      record.measurement = measurement_of(runs->at(i), record.rank);
      record.measurement->device.name = "cpu";
    }
  } catch (const OutOfMemory&) {  // is in the record of its rank
  } catch (const std::bad_alloc&) {
  } catch (const TrainingStopped&) {
  }
  return {.ranks = std::move(records.all()), .interrupted = false};
}

}  // namespace qlp
