// How tokens reach experts that stand on other ranks (AllToAllEP in transformers distributed/expert_parallel.py, 5.24).
#pragma once

#include "autograd/parallel.h"
#include "nn/router.h"
#include "tensor/work.h"

namespace qlp {

struct ExpertParallel {
  RankGroup experts;  ///< ranks that each hold some of the experts
  RankGroup batch;    ///< those of them that hold the same tokens, of which each sends a part
};

/// What a rank's experts run on: tokens [R, H] with one expert each. How many come depends on where the routers send
/// them: as many as the rank sends, where they send them evenly.
struct Dispatched {
  Tensor tokens;
  Routing routing;
};

/// What is needed to bring the results back.
struct DispatchState {
  RowCounts rows;  ///< of tokens on their way to the experts
  Tensor weights;  ///< [T, K]
  Tensor order;    ///< of the T x K rows as they were sent
};

/// `experts`: all of the layer. hidden [T, H]
Dispatched dispatch_tokens(Context& ctx, const Tensor& hidden, const Routing& routing, std::int64_t experts,
                           const ExpertParallel& parallel, DispatchState& state);
/// Results of the experts, weighted and summed for each token of the batch.
Tensor combine_tokens(Context& ctx, const Tensor& results, const DispatchState& state, const ExpertParallel& parallel);

}  // namespace qlp
