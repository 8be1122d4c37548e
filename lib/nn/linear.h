// Linear layers, plain, 4-bit and 8-bit (torch.nn, bitsandbytes.nn).
#pragma once

#include "nn/module.h"
#include "nn/tensor_parallel.h"
#include "nn/token_delta.h"
#include "quant/linear_4bit.h"
#include "quant/linear_8bit.h"

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
  /// Its features are those of this rank.
  void share(const TensorParallel& parallel);
  /// Uses the weight of another module from now on (tied embeddings).
  void tie(Parameter& shared);
  /// Has a parameter of its own again, with the tensor that was shared.
  void untie();
  /// Trains a copy of the weight; the original stays, frozen (PEFT's modules_to_save).
  void train_copy();
  /// Multiplies with the table that these rows are in (PEFT's trainable_token_indices, of tied tables).
  void follow(const TokenDelta& tokens) { tokens_ = &tokens; }

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
  const TokenDelta* tokens_ = nullptr;
  TensorParallel parallel_;
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

class Linear8bit final : public LinearModule {
 public:
  Linear8bit(std::string name, std::int64_t in, std::int64_t out, bool bias, double threshold);
  Tensor forward(Context& ctx, const Tensor& x) override;
  Parameter& weight() override { return *weight_; }
  Parameter* bias() override { return bias_; }

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
  double threshold_;
};

}  // namespace qlp
