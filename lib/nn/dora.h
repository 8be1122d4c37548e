// DoRA: a trained magnitude for each output feature, times the direction of the adapted weight
// (peft/tuners/lora/dora.py).
#pragma once

#include "nn/behaviour.h"
#include "nn/linear.h"

namespace qlp {

/// The adapted layer, as DoRA reads it.
struct DoraOperands {
  Linear& a;
  Linear& b;
  LinearModule& base;
};

/// DoraLinearLayer.
class DoraLayer final : public Module {
 public:
  DoraLayer(std::string name, std::int64_t out, double scaling, const AdapterBehaviour& behaviour);

  /// The magnitude is the norm of each row of the adapted weight, which is made in full, beside a whole copy of a 4-bit
  /// base layer (update_layer).
  void initialise(Context& ctx, const DoraOperands& layer);

  /// What is added to the result of the base layer. x [..., in]; `base_result` [..., out], or none: it is worked out
  /// again from x.
  Tensor forward(Context& ctx, const Tensor& x, const DoraOperands& layer, const Tensor& base_result);

  Parameter& magnitude() { return *magnitude_; }

 private:
  /// B(A(I)) transposed, [out, in], in the dtype of x.
  Tensor lora_weight(Context& ctx, const Tensor& x, const DoraOperands& layer, Tensor& identity);

  Parameter* magnitude_;
  double scaling_;
  AdapterBehaviour behaviour_;
};

}  // namespace qlp
