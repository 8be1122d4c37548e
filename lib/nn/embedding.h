// The table of token embeddings.
#pragma once

#include "nn/module.h"

namespace qlp {

class Embedding final : public Module {
 public:
  Embedding(std::string name, std::int64_t vocabulary, std::int64_t width);
  /// ids [B, S] give [B, S, width]. `requires_grad`: a hook marks the result as a leaf that wants a gradient, before those
  /// of a sharding runtime see it (transformers' enable_input_require_grads).
  Tensor forward(Context& ctx, const Tensor& ids, bool requires_grad);
  Parameter& weight() { return *weight_; }
  /// The table that was loaded, also where a copy of it is trained.
  Parameter& original() { return *own_parameters().front(); }
  /// Trains a copy of the table; the original stays, frozen (PEFT's modules_to_save).
  void train_copy();

 private:
  Parameter* weight_;
};

}  // namespace qlp
