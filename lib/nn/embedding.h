// The table of token embeddings.
#pragma once

#include "nn/module.h"
#include "tensor/work.h"

namespace qlp {

struct EmbeddingOutput {
  /// A hook marks it as a leaf that wants a gradient, before those of a sharding runtime see it (transformers'
  /// enable_input_require_grads).
  bool requires_grad = false;
  bool scaled = false;  ///< by the module itself (Gemma)
};

class Embedding final : public Module {
 public:
  Embedding(std::string name, std::int64_t vocabulary, std::int64_t width);
  /// ids [B, S] give [B, S, width].
  Tensor forward(Context& ctx, const Tensor& ids, EmbeddingOutput output);
  Parameter& weight() { return *weight_; }
  /// The table that was loaded, also where a copy of it is trained.
  Parameter& original() { return *own_parameters().front(); }
  /// Trains a copy of the table; the original stays, frozen (PEFT's modules_to_save).
  void train_copy();
  /// Its rows are those of this rank; the others' lookups are added.
  void share(const RankGroup& group) { group_ = group; }
  /// The factor of its output is a buffer (Gemma of transformers 5).
  void keep_scale() { keeps_scale_ = true; }
  std::vector<ModuleBuffer> own_buffers() override;

 private:
  Parameter* weight_;
  bool keeps_scale_ = false;
  RankGroup group_;
  Tensor scale_;
};

}  // namespace qlp
