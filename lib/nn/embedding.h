// The table of token embeddings.
#pragma once

#include "nn/module.h"

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

 private:
  Parameter* weight_;
};

}  // namespace qlp
