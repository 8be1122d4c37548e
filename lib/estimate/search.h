// How far a job can go: the largest micro batch, sequence or rank, or the fewest GPUs, with which a plan fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "estimate/report.h"

namespace qlp {

/// The keys of a job that can be searched.
enum class SearchKey : std::uint8_t { micro_batch_size, seq_len, r, world_size };

template <>
inline constexpr std::array<EnumName<SearchKey>, 4> kEnumNames<SearchKey>{{
    {SearchKey::micro_batch_size, "micro_batch_size"},
    {SearchKey::seq_len, "seq_len"},
    {SearchKey::r, "r"},
    {SearchKey::world_size, "world_size"},
}};

/// A search for each value of another key.
struct SearchAlong {
  SearchKey key = SearchKey::seq_len;
  std::vector<std::int64_t> values;
};

struct SearchOptions {
  SearchKey key = SearchKey::micro_batch_size;
  std::optional<SearchAlong> along;
  std::optional<std::int64_t> most;  ///< no value past it is tried; none: the last of search_values()
  bool keeps_cache = false;          ///< only what fits without PyTorch's giving its cache back counts
  /// Called before each search with the plan and how many searches of how many are done.
  std::function<void(std::string_view plan, std::size_t done, std::size_t of)> on_progress;
};

/// The job with another value of that key.
struct SearchedJob {
  std::int64_t value = 0;
  PlanReport report;
};

/// One search: a plan, at a value of the key along which is searched.
struct SearchedPlan {
  NamedPlan plan;
  std::optional<std::int64_t> along;
  std::optional<SearchedJob> found;   ///< it fits, and with the next value (of fewer GPUs: the one before) does not
  std::optional<SearchedJob> beyond;  ///< that neighbour; none where the values end
  /// Of the whole job, from the lower bound of the step's time; none where the GPU's rates are unknown.
  std::optional<double> tokens_per_second_upper_bound;
};

struct SearchReport {
  JobSpec job;  ///< as written
  ParameterCounts parameters;
  SearchOptions options;
  std::vector<SearchedPlan> plans;  ///< best first; where values of another key are gone along, in the order of both
  std::optional<std::string> recommended;
  std::optional<Resources> resources;  ///< of the recommended plan at its value
  Diagnostics diagnostics;
};

/// Of world_size the least is wanted, of the others the most.
bool wants_fewest(SearchKey key);
/// Whether some plan fits with some value; what a mistake amounts to does not count.
bool found_any(const SearchReport& report);
/// What the worst rank's GPU would have to have more; none where it has enough.
std::optional<Bytes> lacking(const PlanReport& report);

/// The values that are tried, ascending: whole micro batches; lengths in steps of 64 tokens (that ranks of cp can
/// share) up to what the model is made for; ranks that are powers of two up to the hidden size; GPUs that replicas
/// fill, of one node or whole nodes.
std::vector<std::int64_t> search_values(const JobSpec& job, SearchKey key, std::optional<std::int64_t> most = {});

/// Why the job cannot be searched so; none where it can.
std::optional<Diagnostic> search_refusal(const JobSpec& job, const SearchOptions& options);

/// Each plan is tried at values twice as far each time until its verdict turns, then at halves of what lies between. A
/// plan that fits, does not, and fits again further on is taken at the first turn that is met.
SearchReport search(const JobSpec& job, const SearchOptions& options);

}  // namespace qlp
