#include "nn/sparse_moe.h"

#include <utility>

#include "autograd/views.h"

namespace qlp {

SparseMoe::SparseMoe(std::string name, std::unique_ptr<TopKRouter> router, std::unique_ptr<FusedExperts> experts,
                     bool router_first)
    : FeedForward(ModuleKind::mlp, std::move(name)), router_(std::move(router)), experts_(std::move(experts)) {
  if (router_first) add_child(*router_);
  add_child(*experts_);
  if (!router_first) add_child(*router_);
}

Tensor SparseMoe::forward(Context& ctx, const Tensor& input) {
  return call(ctx, input, [&](const Tensor& x) {
    const Tensor hidden = reshape(ctx, x, {x.size(0) * x.size(1), x.size(2)});
    Routing routing = router_->forward(ctx, hidden);
    Tensor out = experts_->forward(ctx, hidden, routing);
    out = reshape(ctx, out, x.shape());
    routing.logits.reset(), routing.weights.reset(), routing.indices.reset();
    return out;
  });
}

}  // namespace qlp
