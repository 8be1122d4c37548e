// What a node keeps for the backward pass, with the hooks through which checkpointing keeps something else.
#pragma once

#include <utility>

#include "autograd/node.h"

namespace qlp {

/// What a pack hook keeps in place of a tensor.
class PackedTensor : public RefCounted {
 public:
  virtual Tensor unpack(Context& ctx) = 0;
};

/// The tensor itself, kept by a hook.
class KeptTensor final : public PackedTensor {
 public:
  explicit KeptTensor(Tensor tensor) : tensor_(std::move(tensor)) {}
  Tensor unpack(Context&) override { return tensor_; }

 private:
  Tensor tensor_;
};

/// torch.autograd.graph.saved_tensors_hooks; the innermost of Context::saved_hooks is asked.
class SavedTensorHooks {
 public:
  virtual ~SavedTensorHooks() = default;
  virtual Ref<PackedTensor> pack(Context& ctx, const Tensor& tensor) = 0;
};

class SavedTensor {
 public:
  SavedTensor() = default;

  /// Keeps an operand, before the operation runs.
  void save(Context& ctx, const Tensor& operand) {
    if (ctx.saved_hooks.empty())
      tensor_ = operand;
    else
      packed_ = ctx.saved_hooks.back()->pack(ctx, operand);
  }
  /// Keeps a result of the node itself, without the edge back to the node.
  void save_result(Context& ctx, const Tensor& result) {
    if (ctx.saved_hooks.empty())
      tensor_ = result.alias();
    else
      packed_ = ctx.saved_hooks.back()->pack(ctx, result.alias());
  }
  bool saved() const { return tensor_.defined() || packed_; }
  Tensor unpack(Context& ctx) const { return packed_ ? packed_->unpack(ctx) : tensor_; }
  void release() { tensor_.reset(), packed_.reset(); }

 private:
  Tensor tensor_;
  Ref<PackedTensor> packed_;
};

}  // namespace qlp
