#include "step/pipeline.h"

#include "autograd/node.h"
#include "tensor/factories.h"

namespace qlp {

void PipelineBuffers::make(Context& ctx, std::int64_t micro_batch_size, std::int64_t seq_len) {
  if (!inputs_.empty() || !gradients_.empty()) return;
  const Scoped category(ctx.category, Category::communication_buffers);
  const Shape shape{micro_batch_size, seq_len, options_.hidden_size};
  for (std::int64_t i = 0; i < options_.microbatches && !options_.first(); ++i)
    inputs_.push_back(empty(ctx, shape, options_.dtype, Op::recv));
  for (std::int64_t i = 0; i < options_.microbatches && !options_.last(); ++i)
    gradients_.push_back(empty(ctx, shape, options_.dtype, Op::recv));
}

void PipelineBuffers::send(Context& ctx, const Tensor& tensor, std::int64_t to) {
  flush(ctx);
  communicate(ctx, Collective::send, options_.group(), bytes_of(tensor.shape(), tensor.dtype()).count());
  held_ = tensor, held_for_ = to;
}

void PipelineBuffers::receive(Context& ctx, const Tensor& tensor, std::int64_t from) {
  communicate(ctx, Collective::recv, options_.group(), bytes_of(tensor.shape(), tensor.dtype()).count());
  if (held_.defined() && held_for_ == from) {
    exchange(ctx, options_.group(), held_, from, tensor, from);
    held_.reset();
    return;
  }
  flush(ctx);
  recv(ctx, options_.group(), tensor, from);
}

void PipelineBuffers::flush(Context& ctx) {
  if (held_.defined()) qlp::send(ctx, options_.group(), held_, held_for_);
  held_.reset();
}

Tensor PipelineBuffers::receive_input(Context& ctx, std::int64_t i) {
  Tensor input = inputs_[static_cast<std::size_t>(i)].alias();
  receive(ctx, input, options_.stage - 1);
  set_requires_grad(input, true);
  return input;
}

Tensor PipelineBuffers::receive_gradient(Context& ctx, std::int64_t i) {
  const Tensor& gradient = gradients_[static_cast<std::size_t>(i)];
  receive(ctx, gradient, options_.stage + 1);
  return gradient;
}

}  // namespace qlp
