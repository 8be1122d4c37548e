#include "autograd/embedding.h"

#include "autograd/record.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

struct EmbeddingBackward final : Node {
  using Node::Node;
  SavedTensor indices;
  Shape table;
  Grads backward(Context& ctx, Grads& grads) override {
    const Tensor at = indices.unpack(ctx);
    Grads out;
    out.push_back(embedding_dense_backward(ctx, at.numel(), table, grads[0]));
    return out;
  }
  void release() override { indices.release(); }

 private:
  // ATen/native/cuda/Embedding.cu: up to 3072 indices go straight into the dense gradient; more are sorted first.
  static Tensor embedding_dense_backward(Context& ctx, std::int64_t count, const Shape& table, const Tensor& grad) {
    if (count <= 3072) return empty(ctx, table, grad.dtype(), Op::embedding_backward);
    const Tensor sorted = empty(ctx, {count}, DType::int64, Op::sort);
    const Tensor order = empty(ctx, {count}, DType::int64, Op::sort);
    return empty(ctx, table, grad.dtype(), Op::embedding_backward);
  }
};

}  // namespace

Tensor embedding(Context& ctx, const Tensor& indices, const Tensor& weight) {
  const auto node = record<EmbeddingBackward>(ctx, weight);
  if (node) node->table = weight.shape(), node->indices.save(ctx, indices);
  Shape shape = indices.shape();
  shape.push_back(weight.size(1));
  Tensor out = empty(ctx, shape, weight.dtype(), Op::embedding);
  set_history(out, node);
  return out;
}

}  // namespace qlp
