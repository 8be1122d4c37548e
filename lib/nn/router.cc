#include "nn/router.h"

#include <utility>

#include "autograd/indexing.h"
#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/reduce.h"

namespace qlp {

Routing route(Context& ctx, const Tensor& logits, const RouterShape& shape) {
  const Tensor probabilities = softmax(ctx, logits, DType::float32);
  TopK best = topk(ctx, probabilities, shape.top_k);
  if (shape.normalises) {
    const Tensor sum = sum_last(ctx, best.values);
    best.values = div_in_place(ctx, best.values, sum);
  }
  if (shape.weights_in_logit_dtype) best.values = to(ctx, best.values, logits.dtype());
  return {logits, std::move(best.indices), std::move(best.values)};
}

TopKRouter::TopKRouter(std::string name, const RouterShape& shape)
    : Module(ModuleKind::router, std::move(name)),
      weight_(&add_parameter("weight", ParamRole::router, {shape.experts, shape.hidden})),
      shape_(shape) {}

ParamLora& TopKRouter::adapt(std::int64_t r, double scaling) {
  lora_ = std::make_unique<ParamLora>(name(), *weight_, r, scaling);
  add_child(*lora_);
  return *lora_;
}

Routing TopKRouter::forward(Context& ctx, const Tensor& hidden) {
  Routing routing;
  call(ctx, hidden, [&](const Tensor& x) {
    Tensor update, folded;
    if (lora_) update = lora_->activate_matrix(ctx), folded = lora_->fold(ctx, update);
    const Tensor logits = linear(ctx, x, lora_ ? folded : weight_->tensor);
    folded.reset();
    routing = route(ctx, logits, shape_);
    return routing.weights;
  });
  return routing;
}

}  // namespace qlp
