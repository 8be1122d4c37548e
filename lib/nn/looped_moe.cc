#include "nn/looped_moe.h"

#include <utility>

#include "autograd/autocast.h"
#include "autograd/indexing.h"
#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "nn/even_places.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

/// stack[i], whose gradient is as large as the stack.
Tensor select(Context& ctx, const Tensor& stack, std::int64_t i) {
  const Tensor one = slice(ctx, stack, 0, i, 1);
  const Shape& shape = stack.shape();
  return reshape(ctx, one, shape.rank() == 3 ? Shape{shape[1], shape[2]} : Shape{shape[1]});
}

/// x @ matrix + bias, in the low precision dtype under autocast.
Tensor product(Context& ctx, const Tensor& x, const Tensor& matrix, const Tensor& bias) {
  Tensor out;
  {
    const Tensor weight = autocast_low(ctx, matrix), rows = autocast_low(ctx, x);
    out = mm(ctx, rows, weight);
  }
  return add(ctx, out, bias);
}

}  // namespace

LoopedExperts::LoopedExperts(std::string name, const ExpertsShape& shape)
    : Module(ModuleKind::experts, std::move(name)), shape_(shape) {
  const std::int64_t e = shape.experts, h = shape.hidden, i = shape.intermediate;
  gate_up_ = &add_parameter("gate_up_proj", ParamRole::base_weight, {e, h, 2 * i});
  gate_up_bias_ = &add_parameter("gate_up_proj_bias", ParamRole::bias, {e, 2 * i});
  down_ = &add_parameter("down_proj", ParamRole::base_weight, {e, i, h});
  down_bias_ = &add_parameter("down_proj_bias", ParamRole::bias, {e, h});
}

Tensor LoopedExperts::run(Context& ctx, std::int64_t expert, Names& names) {
  {
    const Tensor matrix = select(ctx, gate_up_->tensor, expert), bias = select(ctx, gate_up_bias_->tensor, expert);
    names.gate_up = product(ctx, names.state, matrix, bias);
  }
  apply_clamped_gate(ctx, names.gate_up, names.gate);
  const Tensor matrix = select(ctx, down_->tensor, expert), bias = select(ctx, down_bias_->tensor, expert);
  return product(ctx, names.gate.out, matrix, bias);
}

Tensor LoopedExperts::loop(Context& ctx, const Tensor& hidden, const Tensor& indices, const Tensor& scores) {
  const std::int64_t tokens = hidden.size(0), top_k = indices.size(-1), pairs = tokens * top_k;
  Tensor sum = empty_like(ctx, hidden, Op::zeros);
  fill(ctx, sum, 0);
  const Tensor mask = int64s(ctx, {tokens, top_k, shape_.experts + 1}, Op::zeros);
  {
    const Tensor sums = int64s(ctx, {shape_.experts + 1}, Op::sum);
    reduction_scratch(ctx, mask.view({pairs, shape_.experts + 1}), 1U, Op::sum);
    const Tensor hit = empty(ctx, {shape_.experts + 1}, DType::boolean, Op::ge);
    nonzero(ctx, hit, shape_.experts);
  }
  Names names;
  for (std::int64_t e = 0; e < shape_.experts; ++e) {
    const std::int64_t rows = even_part(pairs, shape_.experts, e);
    {
      const Tensor dense = int64s(ctx, {top_k, tokens}, Op::contiguous);
      names.places = nonzero(ctx, dense, rows);
      fill_even_places(ctx, names.places, {e, shape_.experts, top_k}, tokens);
    }
    const Tensor of_token = names.places.flat(rows, rows);
    names.state = index_rows(ctx, hidden, of_token);
    names.out = run(ctx, e, names);
    {
      const Tensor of_expert = slice(ctx, scores, 1, e, 1);
      const Tensor weights = index_rows(ctx, of_expert, of_token);
      names.weighted = mul(ctx, names.out, weights);
    }
    const Tensor cast = to(ctx, names.weighted, hidden.dtype());
    sum = add_rows_in_place(ctx, sum, of_token, cast);
  }
  return sum;
}

/// Every expert on every token; the results of those that a token is not sent to weigh nothing.
Tensor LoopedExperts::run_all(Context& ctx, const Tensor& hidden, const Tensor& scores) {
  const std::int64_t e = shape_.experts, t = hidden.size(0), h = shape_.hidden, i = shape_.intermediate;
  const Tensor wide = empty(ctx, {1, e, t, h}, hidden.dtype(), Op::clone);
  copy_elements(ctx, wide, hidden.strided(wide.shape(), {0, 0, h, 1}));
  const auto product = [&](Tensor x, const Parameter& stack, const Parameter& bias, std::int64_t width) {
    const Tensor out = batched_matmul(ctx, x, stack.tensor.view({1, e, x.size(-1), width}));
    x.reset();
    return add(ctx, out, bias.tensor.view({1, e, 1, width}));
  };
  const Tensor gate_up = product(wide, *gate_up_, *gate_up_bias_, 2 * i);
  ClampedGate gate;
  apply_clamped_gate(ctx, gate_up, gate);
  Tensor states = product(std::move(gate.out), *down_, *down_bias_, h);
  states = mul(ctx, states, scores.strided({1, e, t, 1}, {0, 1, e, 0}));
  return reshape(ctx, sum_middle(ctx, reshape(ctx, states, {1, e, t * h})), {t, h});
}

Tensor LoopedExperts::forward(Context& ctx, const Tensor& input, const Tensor& indices, const Tensor& scores) {
  return call(ctx, input, [&](const Tensor& hidden) {
    return ctx.training ? loop(ctx, hidden, indices, scores) : run_all(ctx, hidden, scores);
  });
}

LoopedMoe::LoopedMoe(std::string name, std::unique_ptr<TopKRouter> router, std::unique_ptr<LoopedExperts> experts)
    : FeedForward(ModuleKind::mlp, std::move(name)), router_(std::move(router)), experts_(std::move(experts)) {
  add_child(*router_), add_child(*experts_);
}

Tensor LoopedMoe::forward(Context& ctx, const Tensor& input, Tensor& routed) {
  return call(ctx, input, [&](const Tensor& x) {
    const Tensor hidden = reshape(ctx, x, {x.size(0) * x.size(1), x.size(2)});
    Tensor scores, indices;
    {
      Routing routing = router_->forward(ctx, hidden);
      scores = scatter_last(ctx, routing.logits, routing.indices, routing.weights);
      indices = std::move(routing.indices), routed = scores;
    }
    return reshape(ctx, experts_->forward(ctx, hidden, indices, scores), x.shape());
  });
}

}  // namespace qlp
