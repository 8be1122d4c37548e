#include "optim/clip_grad_norm.h"

#include <algorithm>
#include <utility>

#include "autograd/node.h"
#include "base/rounding.h"
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
  for (const Tensor& gradient : gradients) norms.push_back(empty(ctx, {}, gradient.dtype(), Op::foreach_norm));
  return norms;
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
  if (by_dtype.empty()) return empty(ctx, {}, DType::float32, Op::clip_grad_norm);
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
    const Tensor reduced = reduce ? reduce(ctx, stacked) : Tensor();
    return empty(ctx, {}, dtype, Op::linear_norm);
  }
}

void scale_by_norm(Context& ctx, const Tensor& norm, const ReduceNorm& reduce) {
  const auto scalar = [&](Op op) { return empty(ctx, {}, norm.dtype(), op); };
  Tensor quotient;
  {
    const Tensor sum = scalar(Op::add);
    {
      const Tensor reduced = reduce ? reduce(ctx, sum) : Tensor();
      quotient = scalar(Op::reciprocal);
    }
    quotient = scalar(Op::mul);
  }
  const Tensor clamped = scalar(Op::clamp);
}

Tensor clip_grad_norm(Context& ctx, const std::vector<Tensor>& parameters) {
  const Scoped category(ctx.category, Category::workspace);
  Tensor total = total_grad_norm(ctx, parameters);
  scale_by_norm(ctx, total);
  return total;
}

}  // namespace qlp
