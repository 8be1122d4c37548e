// One attention operation, forward and backward, on a device that writes down what it is asked for.
#pragma once

#include <functional>

#include "autograd/attention.h"
#include "quant/recorder.h"

namespace qlp::test {

struct AttentionSize {
  std::int64_t batch, heads, kv_heads, rows, width;
};

struct AttentionRun {
  Events forward, backward;
};

inline DeviceTraits a100() { return {.compute_capability = 80, .sm_count = 108}; }

/// q, k and v as projections leave them: [B, S, H, D] in memory, seen as [B, H, S, D].
using AttentionCall = std::function<Tensor(Context&, const Tensor& q, const Tensor& k, const Tensor& v)>;

inline AttentionRun run_attention(DryDevice& dry, const AttentionSize& size, DType dtype, const AttentionCall& call) {
  const auto heads_first = [&](std::int64_t heads) {
    const Tensor x = dry.tensor({size.batch, size.rows, heads, size.width}, dtype).transpose(1, 2);
    set_requires_grad(x, true);
    return x;
  };
  const Tensor q = heads_first(size.heads), k = heads_first(size.kv_heads), v = heads_first(size.kv_heads);
  const Tensor out = call(dry.ctx, q, k, v);
  AttentionRun run;
  run.forward = dry.recorder.take();
  Grads grads;
  grads.push_back(dry.tensor({size.batch, size.rows, size.heads, size.width}, dtype).transpose(1, 2));
  const Grads result = gradient_edge(out).node->backward(dry.ctx, grads);
  run.backward = dry.recorder.take();
  return run;
}

// What attention did by version of torch.
inline constexpr AttentionBehaviour kTorch24{.flash_rng_on_device = false,
                                             .flash_fills_twice = false,
                                             .full_slices_record = true,
                                             .converts_mask_by_where = false};
inline constexpr AttentionBehaviour kTorch28{.full_slices_record = true};
inline constexpr AttentionBehaviour kTorch214{.efficient_rng_on_device = true, .efficient_groups_heads = true};

}  // namespace qlp::test
