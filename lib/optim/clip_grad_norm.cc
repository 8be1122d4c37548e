#include "optim/clip_grad_norm.h"

#include <algorithm>
#include <utility>

#include "autograd/node.h"
#include "base/rounding.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

constexpr std::int64_t kChunk = 65536;  // elements; MultiTensorApply.cuh, kChunkSize

}  // namespace

std::vector<Tensor> foreach_norm(Context& ctx, const std::vector<Tensor>& gradients) {
  std::int64_t chunks = 1;
  for (const Tensor& gradient : gradients) chunks = std::max(chunks, ceil_div(gradient.numel(), kChunk));
  const auto count = static_cast<std::int64_t>(gradients.size());
  const Tensor partial = empty(ctx, {count * chunks}, DType::float32, Op::foreach_norm);
  std::vector<Tensor> norms;
  for (const Tensor& gradient : gradients) {
    norms.push_back(empty(ctx, {}, gradient.dtype(), Op::foreach_norm));
    norm_into(ctx, norms.back(), gradient);
  }
  return norms;
}

void norm_into(Context& ctx, const Tensor& norm, const Tensor& x) {
  Kernels* const kernels = ctx.kernels(norm);
  if (!kernels) return;
  reduce_all(ctx, Reduce::sum_of_squares, norm, x);
  compute(ctx, Unary::sqrt, norm, norm);
}

void stack_into(Context& ctx, const Tensor& stacked, const std::vector<Tensor>& numbers) {
  if (!ctx.kernels(stacked)) return;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    copy_elements(ctx, stacked.narrow(0, static_cast<std::int64_t>(i), 1), numbers[i]);
}

void scale_gradients(Context& ctx, const std::vector<Tensor>& parameters, const Tensor& factor) {
  if (!ctx.kernels(factor)) return;
  for (const Tensor& parameter : parameters)
    if (const Tensor& grad = grad_of(parameter); grad.defined()) compute(ctx, Binary::mul, grad, grad, factor);
}

Tensor total_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, const ReduceNorm& reduce) {
  std::vector<std::vector<Tensor>> by_dtype;
  for (const Tensor& parameter : parameters) {
    const Tensor& grad = grad_of(parameter);
    if (!grad.defined()) continue;
    auto group = std::find_if(by_dtype.begin(), by_dtype.end(),
                              [&](const auto& tensors) { return tensors.front().dtype() == grad.dtype(); });
    if (group == by_dtype.end()) group = by_dtype.emplace(group);
    group->push_back(grad);
  }
  if (by_dtype.empty()) {
    Tensor none = empty(ctx, {}, DType::float32, Op::clip_grad_norm);
    fill(ctx, none, 0);
    return none;
  }
  // The hash map that PyTorch groups them in gives the dtype that it met last first
  // (_group_tensors_by_device_and_dtype).
  std::reverse(by_dtype.begin(), by_dtype.end());

  {
    std::vector<Tensor> norms;
    DType dtype = by_dtype.front().front().dtype();
    for (const auto& group : by_dtype) {
      if (group.front().dtype() == DType::float32) dtype = DType::float32;
      for (Tensor& norm : foreach_norm(ctx, group)) norms.push_back(std::move(norm));
    }
    const Tensor stacked = empty(ctx, {static_cast<std::int64_t>(norms.size())}, dtype, Op::stack);
    stack_into(ctx, stacked, norms);
    const Tensor reduced = reduce ? reduce(ctx, stacked) : Tensor();
    Tensor norm = empty(ctx, {}, dtype, Op::linear_norm);
    norm_into(ctx, norm, reduced.defined() ? reduced : stacked);
    return norm;
  }
}

void scale_by_norm(Context& ctx, const std::vector<Tensor>& parameters, const Tensor& norm, double max_norm,
                   const ReduceNorm& reduce) {
  const auto scalar = [&](Op name, Unary op, const Tensor& x, double p = 0) {
    Tensor out = empty(ctx, {}, norm.dtype(), name);
    compute(ctx, op, out, x, p);
    return out;
  };
  constexpr double kEps = 1e-6;
  Tensor quotient;
  {
    const Tensor sum = scalar(Op::add, Unary::add, norm, kEps);
    {
      const Tensor reduced = reduce ? reduce(ctx, sum) : Tensor();
      if (reduced.defined()) copy_into(ctx, norm, reduced);
      quotient = scalar(Op::reciprocal, Unary::reciprocal, reduced.defined() ? reduced : sum);
    }
    quotient = scalar(Op::mul, Unary::mul, quotient, max_norm);
  }
  const Tensor clamped = scalar(Op::clamp, Unary::at_most, quotient, 1);
  scale_gradients(ctx, parameters, clamped);
}

Tensor clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters, double max_norm) {
  const Scoped category(ctx.category, Category::workspace);
  if (std::ranges::none_of(parameters, [](const Tensor& parameter) { return grad_of(parameter).defined(); })) {
    const Scoped place(ctx.place, Place::host);  // torch.tensor(0.0)
    return total_grad_norm(ctx, {});
  }
  Tensor total = total_grad_norm(ctx, parameters);
  scale_by_norm(ctx, parameters, total, max_norm);
  return total;
}

}  // namespace qlp
