#include "nn/sparse_moe.h"

#include <utility>

#include "autograd/pointwise.h"
#include "autograd/views.h"

namespace qlp {

SparseMoe::SparseMoe(std::string name, std::unique_ptr<TopKRouter> router, std::unique_ptr<FusedExperts> experts,
                     SharedExpert shared, SparseMoeHabits habits)
    : FeedForward(ModuleKind::mlp, std::move(name)),
      router_(std::move(router)),
      experts_(std::move(experts)),
      shared_(std::move(shared)),
      gives_weights_(habits.gives_weights) {
  if (habits.router_first) add_child(*router_);
  add_child(*experts_);
  if (!habits.router_first) add_child(*router_);
  if (shared_.mlp) add_child(*shared_.mlp), add_child(*shared_.gate);
}

Tensor SparseMoe::forward(Context& ctx, const Tensor& input, Tensor& routed) {
  return call(ctx, input, [&](const Tensor& x) {
    const Tensor hidden = reshape(ctx, x, {x.size(0) * x.size(1), x.size(2)});
    Tensor shared;
    if (shared_.mlp) shared = shared_.mlp->forward(ctx, hidden);
    Routing routing = router_->forward(ctx, hidden);
    Tensor out = experts_->forward(ctx, hidden, routing);
    if (shared_.mlp) {
      shared = weigh_shared(ctx, *shared_.gate, hidden, shared);
      out = add(ctx, out, shared);
    }
    out = reshape(ctx, out, x.shape());
    if (gives_weights_) routed = routing.weights;
    routing.logits.reset(), routing.weights.reset(), routing.indices.reset();
    return out;
  });
}

}  // namespace qlp
