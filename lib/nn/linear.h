// Linear layers: plain, 4-bit, and with a LoRA adapter beside either (torch.nn, bitsandbytes.nn, peft.tuners.lora).
#pragma once

#include <memory>
#include <optional>

#include "nn/behaviour.h"
#include "nn/module.h"
#include "quant/linear_4bit.h"

namespace qlp {

class LinearModule : public Module {
 public:
  using Module::Module;
  /// x [..., in] gives [..., out].
  virtual Tensor forward(Context& ctx, const Tensor& x) = 0;
  virtual Parameter& weight() = 0;
  virtual Parameter* bias() = 0;
};

class Linear final : public LinearModule {
 public:
  Linear(std::string name, std::int64_t in, std::int64_t out, bool bias, ParamRole role,
         ModuleKind kind = ModuleKind::linear);
  Tensor forward(Context& ctx, const Tensor& x) override;
  Parameter& weight() override { return *weight_; }
  Parameter* bias() override { return bias_; }
  /// Uses the weight of another module from now on (tied embeddings).
  void tie(Parameter& shared);
  /// Trains a copy of the weight; the original stays, frozen (PEFT's modules_to_save).
  void train_copy();

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
};

class Linear4bit final : public LinearModule {
 public:
  Linear4bit(std::string name, std::int64_t in, std::int64_t out, bool bias, const FourBitCompute& compute);
  Tensor forward(Context& ctx, const Tensor& x) override;
  Parameter& weight() override { return *weight_; }
  Parameter* bias() override { return bias_; }

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
  FourBitCompute compute_;
};

/// What a LoRA adapter on one layer looks like.
struct LoraOptions {
  std::int64_t r = 8;
  bool dropout = false;
  bool dora = false;
};

/// peft.tuners.lora.Linear and Linear4bit.
class LoraLinear final : public LinearModule {
 public:
  LoraLinear(std::string name, std::unique_ptr<LinearModule> base, const LoraOptions& options, const AdapterBehaviour& behaviour);
  Tensor forward(Context& ctx, const Tensor& x) override;
  Parameter& weight() override { return base_->weight(); }
  Parameter* bias() override { return base_->bias(); }
  LinearModule& base() { return *base_; }
  Linear& lora_a() { return *a_; }
  Linear& lora_b() { return *b_; }
  Parameter* magnitude() { return magnitude_; }

 private:
  Tensor plain(Context& ctx, const Tensor& x);
  Tensor on_4bit(Context& ctx, const Tensor& x);
  Tensor delta(Context& ctx, const Tensor& x);

  std::unique_ptr<LinearModule> base_;
  std::unique_ptr<Linear> a_, b_;
  LoraOptions options_;
  AdapterBehaviour behaviour_;
  Parameter* magnitude_ = nullptr;
};

}  // namespace qlp
