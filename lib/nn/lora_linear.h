// A LoRA adapter beside a linear layer, plain or 4-bit (peft.tuners.lora).
#pragma once

#include <memory>

#include "nn/behaviour.h"
#include "nn/dora.h"
#include "nn/linear.h"

namespace qlp {

/// What a LoRA adapter on one layer looks like.
struct LoraOptions {
  std::int64_t r = 8;
  double dropout = 0;
  double scaling = 1;
  bool dora = false;
  bool bias = false;        ///< of B (lora_bias)
  TensorParallel parallel;  ///< of the base layer: B is cut as its output features are
};

/// peft.tuners.lora.Linear and Linear4bit.
class LoraLinear final : public LinearModule {
 public:
  LoraLinear(std::string name, std::unique_ptr<LinearModule> base, const LoraOptions& options,
             const AdapterBehaviour& behaviour);
  Tensor forward(Context& ctx, const Tensor& x) override;
  Parameter& weight() override { return base_->weight(); }
  Parameter* bias() override { return base_->bias(); }
  LinearModule& base() { return *base_; }
  Linear& lora_a() { return *a_; }
  Linear& lora_b() { return *b_; }
  DoraLayer* dora() { return dora_.get(); }  ///< none without DoRA
  DoraOperands dora_operands() { return {*a_, *b_, *base_}; }

 private:
  bool drops(const Context& ctx) const { return options_.dropout > 0 && ctx.training; }
  Tensor plain(Context& ctx, const Tensor& x);
  Tensor on_quantized(Context& ctx, const Tensor& x);
  /// lora_B(lora_A(dropout(x))) * scaling
  Tensor delta(Context& ctx, const Tensor& x);
  /// DoRA's update of an x that has been through dropout.
  Tensor dora_delta(Context& ctx, const Tensor& x, const Tensor& result);
  /// DoraLinearVariant: result + update.
  Tensor add_dora(Context& ctx, const Tensor& x, const Tensor& result);

  std::unique_ptr<LinearModule> base_;
  std::unique_ptr<Linear> a_, b_;
  std::unique_ptr<DoraLayer> dora_;
  LoraOptions options_;
  AdapterBehaviour behaviour_;
};

}  // namespace qlp
