#include "nn/embedding.h"

#include <utility>

#include "autograd/embedding.h"
#include "autograd/pointwise.h"
#include "tensor/compute.h"

namespace qlp {

Embedding::Embedding(std::string name, std::int64_t vocabulary, std::int64_t width)
    : Module(ModuleKind::embedding, std::move(name)),
      weight_(&add_parameter("weight", ParamRole::embedding, {vocabulary, width})) {}

void Embedding::train_copy() {
  weight_ = &add_parameter("modules_to_save.default.weight", ParamRole::modules_to_save, weight_->shape);
}

std::vector<ModuleBuffer> Embedding::own_buffers() {
  if (kept_scale_ == 0) return {};
  return {{.tensor = &scale_, .shape = {}, .in_model_dtype = true}};
}

void Embedding::fill_buffers(Context& ctx) {
  if (kept_scale_ != 0) fill(ctx, scale_, kept_scale_);
}

Tensor Embedding::forward(Context& ctx, const Tensor& ids, EmbeddingOutput output) {
  return call(ctx, ids, [&](const Tensor& indices) {
    Tensor out = group_.size > 1 ? vocab_parallel_embedding(ctx, indices, weight_->tensor, group_, tied_)
                                 : embedding(ctx, indices, weight_->tensor);
    if (output.scale != 0) out = scale(ctx, out, output.scale);
    if (output.requires_grad) set_requires_grad(out, true);
    return out;
  });
}

}  // namespace qlp
