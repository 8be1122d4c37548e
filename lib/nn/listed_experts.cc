#include "nn/listed_experts.h"

#include <utility>

#include "autograd/indexing.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "nn/even_places.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {

ListedMoe::ListedMoe(std::string name, const RouterShape& shape, std::unique_ptr<LinearModule> gate,
                     std::vector<std::unique_ptr<GatedMlp>> experts, SharedExpert shared, ListedHabits habits)
    : FeedForward(habits.leaf ? ModuleKind::mixture : ModuleKind::mlp, std::move(name)),
      shape_(shape),
      gate_(std::move(gate)),
      experts_(std::move(experts)),
      shared_(std::move(shared)),
      looks_up_(habits.looks_up) {
  shape_.spread = Spread::evenly_in_each_replica;
  add_child(*gate_);
  for (const auto& expert : experts_) add_child(*expert);
  if (shared_.mlp) add_child(*shared_.mlp), add_child(*shared_.gate);
}

/// torch.greater(expert_mask.sum(dim=(-1, -2)), 0).nonzero()
void ListedMoe::look_up_experts(Context& ctx, const Tensor& mask) const {
  const Tensor sums = empty(ctx, {shape_.experts}, DType::int64, Op::sum);
  reduction_scratch(ctx, mask.view({mask.numel() / shape_.experts, shape_.experts}), 1U, Op::sum);
  const Tensor hit = empty(ctx, {shape_.experts}, DType::boolean, Op::ge);
  nonzero(ctx, hit, shape_.experts);
}

Tensor ListedMoe::forward(Context& ctx, const Tensor& input, Tensor& routed) {
  return call(ctx, input, [&](const Tensor& x) {
    const std::int64_t tokens = x.size(0) * x.size(1), width = x.size(2), pairs = tokens * shape_.top_k;
    const Tensor hidden = reshape(ctx, x, {tokens, width});
    const Tensor logits = gate_->forward(ctx, hidden);
    routed = logits;
    const Routing routing = route(ctx, logits, shape_, hidden.dtype());
    Tensor sum = empty(ctx, hidden.shape(), hidden.dtype(), Op::zeros);
    fill(ctx, sum, 0);
    const Tensor mask = empty(ctx, {tokens, shape_.top_k, shape_.experts}, DType::int64, Op::zeros);
    if (looks_up_) look_up_experts(ctx, mask);
    Tensor places, state, weighted;  // Python's names, which hold what the last expert left until they are given anew
    for (std::int64_t i = 0; i < shape_.experts; ++i) {
      const std::int64_t rows = even_part(pairs, shape_.experts, i);
      {
        Tensor own;
        if (looks_up_) own = empty(ctx, {shape_.top_k, tokens}, DType::int64, Op::index);
        const Tensor dense = empty(ctx, {shape_.top_k, tokens}, DType::int64, Op::contiguous);
        places = nonzero(ctx, dense, rows);
        fill_even_places(ctx, places, {i, shape_.experts, shape_.top_k}, tokens);
      }
      const Tensor columns = places.flat(0, rows), of_token = places.flat(rows, rows);
      state = index_rows(ctx, hidden, of_token);
      {
        const Tensor out = experts_[static_cast<std::size_t>(i)]->forward(ctx, state);
        const Tensor weights = index_elements(ctx, routing.weights, of_token, columns);
        weighted = mul(ctx, out, weights);
      }
      const Tensor cast = to(ctx, weighted, hidden.dtype());
      sum = add_rows_in_place(ctx, sum, of_token, cast);
    }
    if (shared_.mlp) {
      Tensor shared = shared_.mlp->forward(ctx, hidden);
      shared = weigh_shared(ctx, *shared_.gate, hidden, shared);
      sum = add(ctx, sum, shared);
    }
    return reshape(ctx, sum, x.shape());
  });
}

}  // namespace qlp
