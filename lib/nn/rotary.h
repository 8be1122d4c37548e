// Rotary position embeddings: the tables of a batch, and their application to q and k.
#pragma once

#include <vector>

#include "nn/behaviour.h"
#include "nn/module.h"
#include "nn/rope_scaling.h"

namespace qlp {

/// Which elements of a head are turned together.
enum class RotaryPairs : std::uint8_t {
  halves,                 ///< one of the first half with one of the second
  neighbours,             ///< each with the next (Cohere)
  neighbours_of_halves,   ///< the same, by tables for halves that every layer lays out anew (GLM)
  halves_by_half_tables,  ///< those of the first half with those of the second, which share one table (GPT-OSS)
};

/// What families do with the tables.
struct RotaryStyle {
  RotaryPairs pairs = RotaryPairs::halves;
  bool float_tables = false;     ///< OLMo 2: what is turned by them is cast to what it was
  bool turns_in_float = false;   ///< Cohere: q and k are cast, and back
  bool joins_rest = false;       ///< Phi-3, GLM: the turned part of a head is joined with the rest
  bool looks_at_length = false;  ///< longrope picks its frequencies by the length of the batch
};

struct RotaryTables {
  Tensor cos, sin;  ///< [1, S, rotary width, or half of it] in the dtype of the residual stream, or in float32
  RotaryStyle style = {};
  bool liger = false;       ///< one kernel turns q and k in place
  bool picks_rows = false;  ///< the tables are [positions, rotary width], and rows are picked from them
};

struct RotaryShape {
  std::int64_t width = 0;      ///< of the rotated part of a head
  std::int64_t positions = 0;  ///< max_position_embeddings
  double theta = 10000;        ///< rope_theta: angles are position * theta^(-2 i / width)
  RopeScaling scaling{};
  RopeBase base() const { return {width, theta, positions, scaling}; }
};

class RotaryEmbedding final : public Module {
 public:
  RotaryEmbedding(std::string name, const RotaryShape& shape, RotaryStyle style, const ModelBehaviour& behaviour);
  /// Tables for positions [1, S] in the dtype of `like`.
  RotaryTables forward(Context& ctx, const Tensor& like, const Tensor& positions);
  /// inv_freq [width / 2] first.
  std::vector<ModuleBuffer> own_buffers() override;
  void fill_buffers(Context& ctx) override;

 private:
  void look_at_length(Context& ctx, const Tensor& positions);
  RotaryTables kept_tables(Context& ctx, const Tensor& like, std::int64_t rows) const;

  RotaryShape shape_;
  RotaryStyle style_;
  RotaryBehaviour behaviour_;
  double attention_scaling_;
  bool by_mul_, scales_late_, liger_;
  bool stretched_ = false;  ///< dynamic's frequencies have met the first batch
  Tensor inv_freq_, original_inv_freq_, cos_, sin_;
  Tensor
      picked_inv_freq_;  ///< longrope's, from the first pass on: before 5.0 what comes from the host, then the long set
};

struct Rotated {
  Tensor q, k;
};
/// q and k [B, heads, S, D].
Rotated apply_rotary(Context& ctx, const Tensor& q, const Tensor& k, const RotaryTables& tables);

}  // namespace qlp
