// Rotary position embeddings: the tables of a batch, and their application to q and k.
#pragma once

#include "nn/behaviour.h"
#include "nn/module.h"

namespace qlp {

struct RotaryTables {
  Tensor cos, sin;        ///< [1, S, rotary width] in the dtype of the residual stream, or in float32
  bool casts_back = false;  ///< what is rotated by float32 tables is cast to what it was
  bool joins_rest = false;  ///< the rotated part of a head is joined with the rest
};

/// What families do with the tables.
struct RotaryStyle {
  bool float_tables = false;  ///< OLMo 2
  bool joins_rest = false;    ///< Phi-3
};

class RotaryEmbedding final : public Module {
 public:
  /// `width` of the rotated part of a head.
  RotaryEmbedding(std::string name, std::int64_t width, RotaryStyle style, const ModelBehaviour& behaviour);
  /// Tables for positions [1, S] in the dtype of `like`.
  RotaryTables forward(Context& ctx, const Tensor& like, const Tensor& positions);
  /// The buffer inv_freq, float32 [width / 2]: moved to the device when the model is.
  Tensor& inv_freq() { return inv_freq_; }
  Tensor& original_inv_freq() { return original_inv_freq_; }
  std::int64_t width() const { return width_; }

 private:
  std::int64_t width_;
  RotaryStyle style_;
  bool by_mul_, scales_late_;
  Tensor inv_freq_, original_inv_freq_;
};

struct Rotated {
  Tensor q, k;
};
/// q and k [B, heads, S, D].
Rotated apply_rotary(Context& ctx, const Tensor& q, const Tensor& k, const RotaryTables& tables);

}  // namespace qlp
