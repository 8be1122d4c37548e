#include "nn/expert_dispatch.h"

#include <numeric>
#include <utility>
#include <vector>

#include "autograd/indexing.h"
#include "autograd/parallel.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// How many rows go to each expert and come for each of this rank's.
struct ExpertCounts {
  Tensor received;                     ///< [ranks, experts of a rank]
  std::vector<std::int64_t> of_pairs;  ///< the same on the host; none where nothing is computed
  RowCounts rows;
};

std::vector<std::int64_t> on_host(Context& ctx, const Tensor& numbers) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < numbers.numel() && ctx.kernels(numbers); ++i)
    out.push_back(static_cast<std::int64_t>(item(ctx, numbers.flat(i, 1))));
  return out;
}

/// To each rank and from it.
RowCounts even_rows(std::int64_t rows, std::int64_t ranks) {
  RowCounts out{.received = rows, .from = {}, .to = {}};
  for (std::int64_t rank = 0; rank < ranks; ++rank) out.to.push_back(even_part(rows, ranks, rank));
  out.from = out.to;
  return out;
}

/// The ranks tell each other, and the host waits for what they say.
ExpertCounts exchange_counts(Context& ctx, const Tensor& expert_ids, std::int64_t experts, const RankGroup& group) {
  const Tensor sent = int64s(ctx, {experts}, Op::zeros);
  {
    const Tensor ones = empty_like(ctx, expert_ids, Op::ones_like);
    fill(ctx, ones, 1);
    scatter_rows(ctx, sent, ones, expert_ids);
  }
  const std::int64_t of_rank = experts / group.size;
  ExpertCounts counts{.received = int64s(ctx, {group.size, of_rank}, Op::empty_like)};
  const Counts alike(static_cast<std::size_t>(group.size), of_rank);
  all_to_all(ctx, group, counts.received, alike, sent, alike);
  const Tensor of_sent = int64s(ctx, {group.size}, Op::sum), of_received = int64s(ctx, {group.size}, Op::sum);
  compute(ctx, Reduce::sum, of_sent.view({group.size, 1}), sent.view({group.size, of_rank}));
  compute(ctx, Reduce::sum, of_received.view({group.size, 1}), counts.received);
  const Tensor both = int64s(ctx, {2, group.size}, Op::stack);
  ctx.device.synchronize();
  counts.of_pairs = on_host(ctx, counts.received);
  counts.rows.to = on_host(ctx, of_sent), counts.rows.from = on_host(ctx, of_received);
  if (ctx.kernels(counts.received) && ctx.device.compute().answers) {
    counts.rows.received = std::accumulate(counts.rows.from.begin(), counts.rows.from.end(), std::int64_t{0});
    return counts;
  }
  counts.of_pairs.clear();
  counts.rows = even_rows(expert_ids.numel(), group.size);
  return counts;
}

/// Of each row that came, the number of its expert among those of this rank.
Tensor received_ids(Context& ctx, const ExpertCounts& counts) {
  const std::int64_t rows = counts.rows.received;
  Tensor ids;
  {
    const Tensor range = int64s(ctx, {counts.received.size(1)}, Op::arange);
    ids = int64s(ctx, {counts.received.numel()}, Op::cat);
  }
  Tensor index;
  {
    const Tensor ends = int64s(ctx, {counts.received.numel()}, Op::cumsum);
    index = int64s(ctx, {rows}, Op::empty);
  }
  Tensor of_rows = int64s(ctx, {rows}, Op::index_select);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < counts.of_pairs.size(); ++i)
    numbers.insert(numbers.end(), static_cast<std::size_t>(counts.of_pairs[i]),
                   static_cast<double>(static_cast<std::int64_t>(i) % counts.received.size(1)));
  if (!numbers.empty()) upload(ctx, of_rows, numbers);
  return of_rows;
}

}  // namespace

Dispatched dispatch_tokens(Context& ctx, const Tensor& hidden, const Routing& routing, std::int64_t experts,
                           const ExpertParallel& parallel, DispatchState& state) {
  const bool shared = parallel.batch.size > 1;
  const auto own = [&](const Tensor& x) { return shared ? cut_part(ctx, x, 0, parallel.batch) : x; };
  const Tensor mine = own(hidden), indices = own(routing.indices);
  state.weights = own(routing.weights);
  const std::int64_t rows = indices.numel();
  const Tensor expert_ids = indices.view({rows});
  state.order = sort(ctx, expert_ids).order;
  Tensor sent;
  {
    const Tensor of_token = token_of_pair(ctx, state.order, indices.size(-1));
    sent = index_rows(ctx, mine, of_token);
  }
  const ExpertCounts counts = exchange_counts(ctx, expert_ids, experts, parallel.experts);
  state.rows = counts.rows;
  Dispatched out;
  out.tokens = exchange_rows(ctx, sent, state.rows, parallel.experts);
  out.routing.indices = received_ids(ctx, counts).view({state.rows.received, 1});
  out.routing.weights = empty_like(ctx, out.routing.indices, out.tokens.dtype(), Op::ones_like);
  fill(ctx, out.routing.weights, 1);
  return out;
}

Tensor combine_tokens(Context& ctx, const Tensor& results, const DispatchState& state, const ExpertParallel& parallel) {
  const std::int64_t tokens = state.weights.size(0), top_k = state.weights.size(1);
  const RowCounts back{.received = tokens * top_k, .from = state.rows.to, .to = state.rows.from};
  const Tensor returned = exchange_rows(ctx, results, back, parallel.experts);
  Tensor rows = put_rows(ctx, returned, state.order);
  rows = reshape(ctx, rows, {tokens, top_k, results.size(1)});
  Tensor sum;
  {
    const Tensor weighted = mul(ctx, rows, reshape(ctx, state.weights, {tokens, top_k, 1}));
    sum = sum_middle(ctx, weighted);
  }
  return parallel.batch.size > 1 ? gather_parts(ctx, sum, 0, parallel.batch) : sum;
}

}  // namespace qlp
