#include "nn/embedding.h"

#include <utility>

#include "autograd/autocast.h"
#include "autograd/embedding.h"
#include "autograd/matmul.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "tensor/compute.h"

namespace qlp {

Embedding::Embedding(std::string name, std::int64_t vocabulary, std::int64_t width)
    : Module(ModuleKind::embedding, std::move(name)),
      weight_(&add_parameter("weight", ParamRole::embedding, {vocabulary, width})) {}

void Embedding::train_copy() {
  weight_ = &add_parameter("modules_to_save.default.weight", ParamRole::modules_to_save, weight_->shape);
}

void Embedding::adapt(std::int64_t r, double scaling, bool hooked) {
  const std::int64_t vocabulary = weight_->shape[0], width = weight_->shape[1];
  adapter_ = {.a = &add_parameter("lora_embedding_A.default", ParamRole::lora_a, {r, vocabulary}),
              .b = &add_parameter("lora_embedding_B.default", ParamRole::lora_b, {width, r}),
              .scaling = scaling,
              .hooked = hooked};
}

void Embedding::train_tokens(std::vector<std::int64_t> tokens) {
  const Shape rows{static_cast<std::int64_t>(tokens.size()), weight_->shape[1]};
  tokens_.emplace(add_parameter("token_adapter.trainable_tokens_delta.default", ParamRole::trainable_tokens, rows),
                  std::move(tokens));
}

Tensor Embedding::lookup(Context& ctx, const Tensor& indices) {
  if (group_.size > 1) return vocab_parallel_embedding(ctx, indices, weight_->tensor, group_, tied_);
  return embedding(ctx, indices, tokens_ ? tokens_->merged(ctx, weight_->tensor) : weight_->tensor);
}

/// F.embedding(x, A.T) @ B.T: views of B are no leaves, so autocast casts them anew in every pass.
Tensor Embedding::adapted(Context& ctx, const Tensor& indices, Tensor result, double own_scale) {
  const DType dtype = result.dtype();
  const Tensor inner = embedding(ctx, indices, transpose(ctx, adapter_->a->tensor, 0, 1));
  Tensor update;
  {
    const Tensor b = autocast_low(ctx, transpose(ctx, adapter_->b->tensor, 0, 1));
    const Tensor product = linear(ctx, inner, transpose(ctx, b, 0, 1));
    update = scale(ctx, product, adapter_->scaling);
  }
  if (own_scale != 0) update = scale(ctx, update, own_scale);  // _get_embed_scale
  result = add(ctx, result, update);
  return to(ctx, result, dtype);
}

std::vector<ModuleBuffer> Embedding::own_buffers() {
  std::vector<ModuleBuffer> buffers;
  if (kept_scale_ != 0) buffers.push_back({.tensor = &scale_, .shape = {}, .in_model_dtype = true});
  // The rows as they were, which PEFT adds to the loaded model.
  if (tokens_ && tokens_->original().defined())
    buffers.push_back({.tensor = &tokens_->original(), .shape = tokens_->rows().shape, .in_model_dtype = true});
  return buffers;
}

void Embedding::fill_buffers(Context& ctx) {
  if (kept_scale_ != 0) fill(ctx, scale_, kept_scale_);
}

Tensor Embedding::forward(Context& ctx, const Tensor& ids, EmbeddingOutput output) {
  return call(ctx, ids, [&](const Tensor& indices) {
    Tensor out = lookup(ctx, indices);
    if (output.scale != 0) out = scale(ctx, out, output.scale);
    const bool marks = adapter_ ? adapter_->hooked : !out.requires_grad();
    if (output.requires_grad && marks) set_requires_grad(out, true);
    return adapter_ ? adapted(ctx, indices, std::move(out), output.scale) : out;
  });
}

}  // namespace qlp
