#include "shard/zero_unfused.h"

#include <cmath>
#include <utility>

#include "autograd/node.h"
#include "optim/weight_decay.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"
#include "tensor/reduction.h"

namespace qlp {
namespace {

/// MEMORY_OPT_ALLREDUCE_SIZE (engine.py)
constexpr std::int64_t kReducedAtOnce = 500'000'000;

/// x.float()
Tensor widened(Context& ctx, const Tensor& x) {
  Tensor wide = empty_like(ctx, x, DType::float32, Op::to_copy);
  copy_into(ctx, wide, x);
  return wide;
}

}  // namespace

void ZeroUnfusedRuntime::prepare(Context& ctx, CausalLm& model) {
  prepare_engine(ctx, model, options_);
  const Scoped category(ctx.category, Category::optimizer_state);
  for (const std::size_t group : {0U, 1U})
    for (Parameter* parameter : model.parameters()) {
      if (!parameter->trainable || group_of(*parameter) != group) continue;
      const Tensor clone = empty_like(ctx, parameter->tensor, Op::clone);
      copy_into(ctx, clone, parameter->tensor);
      const Tensor master = widened(ctx, clone);
      set_requires_grad(master, true);
      masters_.push_back({parameter, master});
    }
}

/// initialize_optimizer_states: a step with gradients of zeros, those of the parameters among them.
void ZeroUnfusedRuntime::initialize_states(Context& ctx, Optimizer& optimizer) {
  const Scoped category(ctx.category, Category::gradients);
  const auto zeros = [&](const Tensor& tensor) {
    const Tensor grad = empty_like(ctx, tensor, Op::zeros);
    fill(ctx, grad, 0);
    set_grad(tensor, grad);
  };
  for (const TrainedTensor& master : masters_) zeros(master.parameter->tensor);
  for (const TrainedTensor& master : masters_) zeros(master.tensor);
  optimizer.step(ctx);
  for (const TrainedTensor& master : masters_) {
    set_grad(master.parameter->tensor, Tensor());
    set_grad(master.tensor, Tensor());
  }
}

void ZeroUnfusedRuntime::save_training_state(Context& ctx, CausalLm& model, Optimizer& optimizer,
                                             const TrainingStateRequest& request) {
  if (request.first) {
    const StateDict module = ShardingRuntime::state_dict(ctx, model, true);
    for (const TrainedTensor& master : masters_) write_tensors(ctx, {master.parameter->tensor});
  }
  for (const OptimizerEntry& entry : optimizer.state()) write_tensors(ctx, entry.state);
  for (const TrainedTensor& master : masters_) write_tensors(ctx, {master.tensor});
}

/// buffered_allreduce_fallback (engine.py)
void ZeroUnfusedRuntime::finish_backward(Context& ctx) {
  if (!boundary()) return;
  std::vector<Tensor> bucket;
  std::int64_t numel = 0;
  for (const TrainedTensor& master : masters_) {
    const Tensor& grad = grad_of(master.parameter->tensor);
    if (!grad.defined()) continue;
    bucket.push_back(grad);
    numel += grad.numel();
    if (numel > kReducedAtOnce) reduce(ctx, std::exchange(bucket, {})), numel = 0;
  }
  if (!bucket.empty()) reduce(ctx, bucket);
}

/// allreduce_and_copy (engine.py): joined, in the dtype of communication.
void ZeroUnfusedRuntime::reduce(Context& ctx, const std::vector<Tensor>& gradients) const {
  const Scoped category(ctx.category, Category::communication_buffers);
  std::int64_t numel = 0;
  for (const Tensor& gradient : gradients) numel += gradient.numel();
  const DType dtype = gradients.front().dtype();
  const bool joins = gradients.size() > 1, casts = options_.reduced_dtype() != dtype;
  const Tensor joined = joins ? empty(ctx, {numel}, dtype, Op::cat) : gradients.front().view({numel});
  const auto copy = [&](bool in) {
    std::int64_t start = 0;
    for (const Tensor& gradient : gradients) {
      const Tensor place = joined.flat(start, gradient.numel());
      if (joins) copy_elements(ctx, in ? place : gradient, in ? gradient : place);
      start += gradient.numel();
    }
  };
  copy(true);
  const Tensor sent = casts ? empty(ctx, {numel}, options_.reduced_dtype(), Op::to_copy) : joined;
  if (casts) copy_elements(ctx, sent, joined);
  all_reduce(ctx, options_.group(), sent, ReduceOp::average);
  if (options_.records_collectives && (joins || casts)) sent.storage().record_stream(zero_stream::kCollectives);
  if (casts) copy_elements(ctx, joined, sent);
  copy(false);
}

void ZeroUnfusedRuntime::step(Context& ctx, Optimizer& optimizer) {
  const Scoped category(ctx.category, Category::workspace);
  look_for_overflow(ctx);
  double squares = 0;
  for (const std::size_t group : {0U, 1U}) {
    squares += std::pow(norm_of(ctx, group), 2);
    const Scoped of_gradients(ctx.category, Category::gradients);
    for (const TrainedTensor& master : masters_)
      if (const Tensor& grad = grad_of(master.parameter->tensor);
          group_of(*master.parameter) == group && grad.defined())
        set_grad(master.tensor, widened(ctx, grad));
  }
  norm_ = std::sqrt(squares);
  constexpr double kEps = 1e-6;
  const double excess = options_.clips() ? (norm_ + kEps) / options_.gradient_clipping : 1;
  for (const TrainedTensor& master : masters_)
    if (const Tensor& grad = grad_of(master.tensor); grad.defined() && excess > 1)
      compute(ctx, Unary::mul, grad, grad, 1 / excess);
  optimizer.step(ctx);
  for (const TrainedTensor& master : masters_) {
    set_grad(master.tensor, Tensor());
    copy_into(ctx, master.parameter->tensor, master.tensor);
  }
  for (const TrainedTensor& master : masters_) set_grad(master.parameter->tensor, Tensor());
}

/// CheckOverflow (runtime/utils.py): the sum of each gradient, which the host reads; then a flag.
void ZeroUnfusedRuntime::look_for_overflow(Context& ctx) const {
  for (const TrainedTensor& master : masters_) {
    const Tensor& grad = grad_of(master.parameter->tensor);
    if (!grad.defined()) continue;
    const Tensor wide = widened(ctx, grad);
    const Tensor sum = empty(ctx, {}, DType::float32, Op::sum);
    full_reduction_scratch(ctx, grad.numel(), Op::sum);
    reduce_all(ctx, Reduce::sum, sum, wide);
    ctx.device.synchronize();
  }
  const Tensor flag = empty(ctx, {1}, DType::uint8, Op::input);
  fill(ctx, flag, 0);
}

/// get_weight_norm of a group's gradients (runtime/utils.py), a number of the process.
double ZeroUnfusedRuntime::norm_of(Context& ctx, std::size_t group) const {
  Tensor total;
  for (const TrainedTensor& master : masters_) {
    const Tensor& grad = grad_of(master.parameter->tensor);
    if (group_of(*master.parameter) != group || !grad.defined()) continue;
    const Tensor norm = empty(ctx, {}, DType::float32, Op::linear_norm);
    {
      const Tensor wide = widened(ctx, grad);
      full_reduction_scratch(ctx, grad.numel(), Op::linear_norm);
      norm_into(ctx, norm, wide);
    }
    const Tensor squared = empty(ctx, {}, DType::float32, Op::pow);
    compute(ctx, Unary::square, squared, norm);
    if (total.defined()) {
      compute(ctx, Binary::add, total, total, squared);
    } else {
      total = empty(ctx, {}, DType::float32, Op::add);
      copy_into(ctx, total, squared);
    }
  }
  if (!total.defined()) return 0;
  ctx.device.synchronize();
  return std::sqrt(item(ctx, total));
}

std::size_t ZeroUnfusedRuntime::group_of(const Parameter& parameter) const {
  return zero_group(options_.one_group, has_weight_decay(parameter, options_.norms_decay));
}

}  // namespace qlp
