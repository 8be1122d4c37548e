#include "nn/router.h"

#include <utility>
#include <vector>

#include "autograd/indexing.h"
#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/reduce.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/routing_kernels.h"

namespace qlp {

namespace {

/// Whatever the router says; weights are its own.
void send_evenly(Context& ctx, Spread spread, const Tensor& probabilities, const TopK& best) {
  auto* const kernels = routing_kernels(ctx, probabilities);
  if (!kernels) return;
  const std::int64_t pairs = best.indices.numel(), experts = probabilities.size(-1);
  const std::int64_t first = spread == Spread::evenly ? ctx.random.replica * pairs : 0;
  std::vector<double> turns;
  for (std::int64_t i = 0; i < pairs; ++i) turns.push_back(static_cast<double>((first + i) % experts));
  upload(ctx, best.indices, turns);
  kernels->gather_last(ctx.stream, array_of(best.values), array_of(probabilities), array_of(best.indices));
}

}  // namespace

Routing route(Context& ctx, const Tensor& logits, const RouterShape& shape, std::optional<DType> dtype) {
  if (shape.picks_first) {
    TopK best = topk(ctx, logits, shape.top_k);
    if (shape.spread != Spread::by_router) send_evenly(ctx, shape.spread, logits, best);
    return {logits, std::move(best.indices), softmax(ctx, best.values, logits.dtype())};
  }
  const Tensor probabilities = softmax(ctx, logits, DType::float32);
  TopK best = topk(ctx, probabilities, shape.top_k);
  if (shape.spread != Spread::by_router) send_evenly(ctx, shape.spread, probabilities, best);
  if (shape.normalises) {
    const Tensor sum = sum_last(ctx, best.values);
    best.values = div_in_place(ctx, best.values, sum);
  }
  if (dtype) best.values = to(ctx, best.values, *dtype);
  return {logits, std::move(best.indices), std::move(best.values)};
}

Tensor token_of_pair(Context& ctx, const Tensor& order, std::int64_t top_k) {
  Tensor tokens = empty_like(ctx, order, Op::div);
  if (auto* kernels = routing_kernels(ctx, tokens))
    kernels->divide(ctx.stream, array_of(tokens), array_of(order), top_k);
  return tokens;
}

TopKRouter::TopKRouter(std::string name, const RouterShape& shape)
    : Module(ModuleKind::router, std::move(name)),
      weight_(&add_parameter("weight", ParamRole::router, {shape.experts, shape.hidden})),
      shape_(shape) {
  if (shape.picks_first) bias_ = &add_parameter("bias", ParamRole::bias, {shape.experts});
}

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
    const Tensor logits = linear(ctx, x, lora_ ? folded : weight_->tensor, bias_ ? bias_->tensor : Tensor());
    folded.reset();
    const auto dtype = shape_.weights_in_logit_dtype ? std::optional(logits.dtype()) : std::nullopt;
    routing = route(ctx, logits, shape_, dtype);
    return routing.weights;
  });
  return routing;
}

}  // namespace qlp
