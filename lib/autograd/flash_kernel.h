// FlashAttention's kernels without autograd (aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp).
#pragma once

#include "autograd/attention_behaviour.h"
#include "autograd/node.h"
#include "autograd/saved_tensor.h"
#include "tensor/kernels.h"

namespace qlp {

struct FlashOutput {
  Tensor out;           ///< [B, H, S, D] in the memory order of q
  Tensor lse;           ///< [B, H, S] of float32
  Tensor seed, offset;  ///< none where they stay on the host
};

/// q [B, H, S, D], k and v [B, Hkv, T, D].
FlashOutput flash_forward(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionBehaviour& behaviour, const AttentionOptions& options);

/// Gradients of q, k and v, for that of `output.out`.
Grads flash_backward(Context& ctx, const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                     const FlashOutput& output, const AttentionOptions& options);

/// A node that keeps what the kernel's backward pass reads, in the order in which PyTorch's nodes keep and drop it.
class FlashNode : public Node {
 public:
  using Node::Node;
  void save_operands(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v);
  void save_output(Context& ctx, const FlashOutput& output);
  void release() override;

 protected:
  struct Saved {
    Tensor q, k, v;
    FlashOutput output;
  };
  Saved unpack(Context& ctx) const;

 private:
  SavedTensor q_, k_, v_, out_, lse_, seed_, offset_;
};

}  // namespace qlp
