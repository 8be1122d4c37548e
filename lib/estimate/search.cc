#include "estimate/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "estimate/closed_form.h"
#include "estimate/estimate.h"
#include "estimate/ledger.h"
#include "estimate/outside_terms.h"
#include "plan/mistakes.h"

namespace qlp {
namespace {

constexpr std::int64_t kMostMicroBatch = 65536, kMostGpus = 1024, kLengthStep = 64;

void set(JobSpec& job, SearchKey key, std::int64_t value) {
  switch (key) {
    case SearchKey::micro_batch_size:
      job.training.micro_batch_size = value;
      return;
    case SearchKey::seq_len:
      job.training.seq_len = value;
      return;
    case SearchKey::r:
      job.adapter->r = value;
      return;
    case SearchKey::world_size:
      job.cluster.world_size = value;
      return;
  }
}

/// The last of `count` places at which it holds, where it holds up to some place and not past it; none where it does
/// not even at the first.
template <class Holds>
std::optional<std::size_t> last_place(std::size_t count, Holds&& holds) {
  if (count == 0 || !holds(0)) return std::nullopt;
  std::size_t yes = 0, no = count;
  for (std::size_t step = 1; yes + step < count; step *= 2) {
    if (!holds(yes + step)) {
      no = yes + step;
      break;
    }
    yes += step;
  }
  while (yes + 1 < no) {
    const std::size_t middle = yes + (no - yes) / 2;
    (holds(middle) ? yes : no) = middle;
  }
  return yes;
}

/// One plan of one job, at the values that were asked for.
class Search {
 public:
  Search(JobSpec job, const NamedPlan& plan, const SearchOptions& options)
      : job_(std::move(job)),
        plan_(plan),
        key_(options.key),
        keeps_cache_(options.keeps_cache),
        values_(search_values(job_, options.key, options.most)) {}

  SearchedPlan result() {
    SearchedPlan result{.plan = plan_};
    const bool fewest = wants_fewest(key_);
    const auto last = last_place(values_.size(), [&](std::size_t at) { return fits(at) != fewest; });
    const std::size_t past = last ? *last + 1 : 0;
    const auto played = [&](std::size_t at) { return SearchedJob{values_[at], reports_.at(at)}; };
    auto &before = fewest ? result.beyond : result.found, &after = fewest ? result.found : result.beyond;
    if (last) before = played(*last);
    if (past < values_.size()) after = played(past);
    if (result.found) result.tokens_per_second_upper_bound = tokens_per_second(*result.found);
    return result;
  }

 private:
  bool fits(std::size_t at) {
    set(job_, key_, values_[at]);
    const PlanReport& report = reports_.insert_or_assign(at, estimate_plan(job_, plan_)).first->second;
    return report.fits && !(keeps_cache_ && report.cache_given_back);
  }

  std::optional<double> tokens_per_second(const SearchedJob& found) {
    if (!found.report.step_time) return std::nullopt;
    set(job_, key_, found.value);
    const TrainingSpec& training = job_.training;
    const auto replicas = ranks_of(job_, plan_) / job_.cluster.mesh.ranks_of_replica();
    const auto tokens = training.micro_batch_size * training.seq_len * training.gradient_accumulation_steps * replicas;
    return static_cast<double>(tokens) / found.report.step_time->lower_bound;
  }

  JobSpec job_;
  const NamedPlan& plan_;
  SearchKey key_;
  bool keeps_cache_;
  std::vector<std::int64_t> values_;
  std::map<std::size_t, PlanReport> reports_;
};

/// Smaller is better. Tokens a second, to 1 %, are what a larger micro batch is wanted for; elsewhere the value counts
/// first.
auto preference(const SearchedPlan& plan, SearchKey key) {
  const std::int64_t value = plan.found ? plan.found->value : 0;
  const double rate = plan.tokens_per_second_upper_bound.value_or(0);
  const long steps = rate > 0 ? -std::lround(std::log(rate) * 100) : 0;
  const std::int64_t far = wants_fewest(key) ? value : -value;
  return std::tuple{!plan.found, find_mistake(plan.plan.name) != nullptr,
                    key == SearchKey::micro_batch_size ? steps : 0, far, steps};
}

void recommend(SearchReport& report) {
  if (report.plans.empty()) return;
  const SearchedPlan& best = report.plans.front();
  if (!best.found || find_mistake(best.plan.name)) return;
  report.recommended = best.plan.name;
  JobSpec job = report.job;
  set(job, report.options.key, best.found->value);
  report.resources = resources_of(best.found->report, job);
}

}  // namespace

bool wants_fewest(SearchKey key) { return key == SearchKey::world_size; }

bool found_any(const SearchReport& report) {
  return std::ranges::any_of(report.plans,
                             [](const SearchedPlan& plan) { return plan.found && !find_mistake(plan.plan.name); });
}

std::optional<Bytes> lacking(const PlanReport& report) {
  if (report.ranks.empty()) return std::nullopt;
  const std::int64_t headroom = report.ranks.front().peak.headroom.count();
  return headroom < 0 ? std::optional(Bytes{static_cast<std::uint64_t>(-headroom)}) : std::nullopt;
}

std::vector<std::int64_t> search_values(const JobSpec& job, SearchKey key, std::optional<std::int64_t> most) {
  std::vector<std::int64_t> values;
  const auto steps = [&](std::int64_t step, std::int64_t last) {
    for (std::int64_t value = step; value <= std::min(last, most.value_or(last)); value += step)
      values.push_back(value);
  };
  switch (key) {
    case SearchKey::micro_batch_size:
      steps(1, most.value_or(kMostMicroBatch));
      break;
    case SearchKey::seq_len: {
      const std::int64_t last = job.model.max_position_embeddings;
      steps(std::lcm(kLengthStep, job.cluster.mesh.cp * 2), most.value_or(last > 0 ? last : job.training.seq_len));
      break;
    }
    case SearchKey::r:
      for (std::int64_t r = 1; r <= most.value_or(job.model.hidden_size); r *= 2) values.push_back(r);
      break;
    case SearchKey::world_size: {
      const Mesh& mesh = job.cluster.mesh;
      const std::int64_t node = job.cluster.gpus_per_node;
      steps(mesh.ranks_of_replica(), most.value_or(kMostGpus));
      std::erase_if(values, [&](std::int64_t n) { return n / mesh.pp % mesh.ep != 0 || (n > node && n % node != 0); });
      break;
    }
  }
  return values;
}

std::optional<Diagnostic> search_refusal(const JobSpec& job, const SearchOptions& options) {
  const auto refuse = [](std::string message, std::string hint) {
    return Diagnostic{.severity = Severity::error,
                      .code = "cannot-search",
                      .message = std::move(message),
                      .key_path = {},
                      .position = {},
                      .hint = std::move(hint)};
  };
  const bool along = options.along.has_value();
  if (!job.adapter && (options.key == SearchKey::r || (along && options.along->key == SearchKey::r)))
    return refuse("the job has no adapter whose r could be another", "search another key");
  if (along && options.along->key == options.key)
    return refuse("a search for " + std::string(name_of(options.key)) + " along itself", "give another key");
  if (along && options.along->key == SearchKey::world_size)
    for (const std::int64_t value : options.along->values)
      if (value % job.cluster.mesh.ranks_of_replica() != 0)
        return refuse(std::to_string(value) + " GPUs cannot be shared by replicas of " +
                          std::to_string(job.cluster.mesh.ranks_of_replica()) + ", which cluster.mesh asks for",
                      "give multiples of it");
  if (search_values(job, options.key, options.most).empty())
    return refuse("no value of " + std::string(name_of(options.key)) + " to try", "allow larger ones");
  return std::nullopt;
}

SearchReport search(const JobSpec& job, const SearchOptions& options) {
  SearchReport report;
  report.job = job;
  report.parameters = count_parameters(job);
  report.options = options;
  std::vector<std::optional<std::int64_t>> along{std::nullopt};
  if (options.along) along.assign(options.along->values.begin(), options.along->values.end());
  std::size_t done = 0;
  for (const NamedPlan& plan : job.plans) {
    for (const auto& value : along) {
      if (options.on_progress) options.on_progress(plan.name, done++, job.plans.size() * along.size());
      JobSpec changed = job;
      if (value) set(changed, options.along->key, *value);
      report.plans.push_back(Search(std::move(changed), plan, options).result());
      report.plans.back().along = value;
    }
  }
  if (options.along) return report;
  std::ranges::stable_sort(report.plans, {}, [&](const SearchedPlan& plan) { return preference(plan, options.key); });
  recommend(report);
  return report;
}

}  // namespace qlp
