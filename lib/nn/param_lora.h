// LoRA beside a bare parameter: the update is folded into a copy of the whole parameter, in every forward pass
// (peft.tuners.lora.ParamWrapper, 0.21).
#pragma once

#include <memory>

#include "nn/linear.h"

namespace qlp {

class ParamLora final : public Module {
 public:
  /// Beside a matrix [out, in], or a stack of them [E, out, in] or, turned, [E, in, out]; each with matrices of rank
  /// `r`.
  ParamLora(std::string name, Parameter& base, std::int64_t r, double scaling, bool turned = false);

  /// The low-rank factors of a stack, in the dtype of the parameter.
  struct Factors {
    Tensor left, right;  ///< [E, out, r] and [E, r, in]; turned, [E, in, r] and [E, r, out]
  };
  /// Registering the parametrization evaluates it once, and drops the result.
  Factors activate_stack(Context& ctx);
  /// The stack with its update: what the layer multiplies with, kept for the backward pass.
  Tensor fold(Context& ctx, const Factors& factors);

  /// The same for a single matrix: its update in full, then the sum.
  Tensor activate_matrix(Context& ctx);
  Tensor fold(Context& ctx, const Tensor& update);

  Parameter& base() { return *base_; }
  Linear& lora_a() { return *a_; }
  Linear& lora_b() { return *b_; }

 private:
  Parameter* base_;
  std::int64_t experts_, out_, in_, r_;
  double scaling_;
  bool turned_;
  std::unique_ptr<Linear> a_, b_;  ///< [r E, in], [out, r E]
};

}  // namespace qlp
