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

Tensor PipelineBuffers::receive_input(Context& ctx, std::int64_t i) {
  Tensor input = inputs_[static_cast<std::size_t>(i)].alias();
  recv(ctx, options_.group(), input, options_.stage - 1);
  set_requires_grad(input, true);
  return input;
}

void PipelineBuffers::send_output(Context& ctx, const Tensor& hidden) const {
  send(ctx, options_.group(), hidden, options_.stage + 1);
}

Tensor PipelineBuffers::receive_gradient(Context& ctx, std::int64_t i) {
  const Tensor& gradient = gradients_[static_cast<std::size_t>(i)];
  recv(ctx, options_.group(), gradient, options_.stage + 1);
  return gradient;
}

void PipelineBuffers::send_gradient(Context& ctx, const Tensor& gradient) const {
  send(ctx, options_.group(), gradient, options_.stage - 1);
}

}  // namespace qlp
