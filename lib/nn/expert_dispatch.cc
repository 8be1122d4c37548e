#include "nn/expert_dispatch.h"

#include <utility>

#include "autograd/indexing.h"
#include "autograd/parallel.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "tensor/collective.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// How many rows go to each expert and come for each of this rank's, which the ranks tell each other and the host waits
/// for. Gives what came.
Tensor exchange_counts(Context& ctx, const Tensor& expert_ids, std::int64_t experts, const RankGroup& group) {
  const Tensor sent = int64s(ctx, {experts}, Op::zeros);
  { const Tensor ones = empty_like(ctx, expert_ids, Op::ones_like); }
  Tensor received = int64s(ctx, {group.size, experts / group.size}, Op::empty_like);
  communicate(ctx, Collective::all_to_all, group, bytes_of(sent.shape(), DType::int64).count());
  const Tensor of_sent = int64s(ctx, {group.size}, Op::sum), of_received = int64s(ctx, {group.size}, Op::sum);
  const Tensor both = int64s(ctx, {2, group.size}, Op::stack);
  ctx.device.synchronize();
  return received;
}

/// Of each row that came, the number of its expert among those of this rank.
Tensor received_ids(Context& ctx, const Tensor& counts, std::int64_t rows) {
  Tensor ids;
  {
    const Tensor range = int64s(ctx, {counts.size(1)}, Op::arange);
    ids = int64s(ctx, {counts.numel()}, Op::cat);
  }
  Tensor index;
  {
    const Tensor ends = int64s(ctx, {counts.numel()}, Op::cumsum);
    index = int64s(ctx, {rows}, Op::empty);
  }
  return int64s(ctx, {rows}, Op::index_select);
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
    const Tensor of_token = empty_like(ctx, state.order, Op::div);
    sent = index_rows(ctx, mine, of_token);
  }
  const Tensor counts = exchange_counts(ctx, expert_ids, experts, parallel.experts);
  Dispatched out;
  out.tokens = exchange_rows(ctx, sent, rows, parallel.experts);
  out.routing.indices = received_ids(ctx, counts, rows).view({rows, 1});
  out.routing.weights = empty_like(ctx, out.routing.indices, out.tokens.dtype(), Op::ones_like);
  return out;
}

Tensor combine_tokens(Context& ctx, const Tensor& results, const DispatchState& state, const ExpertParallel& parallel) {
  const std::int64_t tokens = state.weights.size(0), top_k = state.weights.size(1);
  const Tensor returned = exchange_rows(ctx, results, tokens * top_k, parallel.experts);
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
