// The table of token embeddings, and what PEFT trains beside it.
#pragma once

#include <optional>
#include <vector>

#include "nn/module.h"
#include "nn/token_delta.h"
#include "tensor/work.h"

namespace qlp {

/// Where the embedding is multiplied by a number.
enum class EmbeddingScale : std::uint8_t {
  none,
  by_module,     ///< by the module, whose factor is a buffer: Gemma 3, Gemma 2 from transformers 5 on
  at_once,       ///< ahead of positions and masks: Granite
  after_rotary,  ///< once the rotary tables are made: Gemma 2 before
};

struct EmbeddingOutput {
  /// A hook marks it as a leaf that wants a gradient, before those of a sharding runtime see it (transformers'
  /// enable_input_require_grads).
  bool requires_grad = false;
  double scale = 0;  ///< by the module itself (Gemma); 0: none
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
  /// Trains matrices beside the table: A [r, vocabulary], B [width, r] (peft.tuners.lora.Embedding). `hooked`: the hook
  /// of EmbeddingOutput is on the table that PEFT wraps, else on the wrapper.
  void adapt(std::int64_t r, double scaling, bool hooked);
  /// Trains the rows of these tokens (PEFT's trainable_token_indices).
  void train_tokens(std::vector<std::int64_t> tokens);
  TokenDelta* tokens() { return tokens_ ? &*tokens_ : nullptr; }  ///< none where no single rows are trained
  /// Its rows are those of this rank; the others' lookups are added. `tied`: the head reads the same parameter.
  void share(const RankGroup& group, bool tied) {
    group_ = group, tied_ = tied, weight_->mesh = LayerMesh::tp, weight_->parts = group.size;
  }
  /// The head has a parameter of its own again.
  void untie() { tied_ = false; }
  /// The factor of its output is a buffer (Gemma of transformers 5).
  void keep_scale(double scale) { kept_scale_ = scale; }
  std::vector<ModuleBuffer> own_buffers() override;
  void fill_buffers(Context& ctx) override;

 private:
  struct Adapter {
    Parameter *a, *b;
    double scaling;
    bool hooked;
  };
  Tensor lookup(Context& ctx, const Tensor& indices);
  /// What the adapter adds to a result.
  /// `own_scale`: of the module itself, which its update is multiplied by too; 0: none.
  Tensor adapted(Context& ctx, const Tensor& indices, Tensor result, double own_scale);

  Parameter* weight_;
  double kept_scale_ = 0;  ///< 0: none
  bool tied_ = false;
  RankGroup group_;
  Tensor scale_;
  std::optional<Adapter> adapter_;
  std::optional<TokenDelta> tokens_;
};

}  // namespace qlp
