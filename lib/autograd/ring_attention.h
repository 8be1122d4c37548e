// Attention of a sequence that ranks share: keys and values go round, what each brings is merged
// (torch/distributed/tensor/experimental/_context_parallel/_attention.py, 2.14).
#pragma once

#include <cstdint>

#include "autograd/attention_behaviour.h"
#include "autograd/node.h"
#include "tensor/work.h"

namespace qlp {

/// How keys and values reach the other ranks (set_rotate_method).
enum class RingRotation : std::uint8_t {
  allgather,  ///< all at once, before the second step
  alltoall,   ///< from neighbour to neighbour, step by step
};

struct Ring {
  std::int64_t ranks = 1;
  std::int64_t rank = 0;
  RingRotation rotation = RingRotation::allgather;

  RankGroup group() const { return {MeshAxis::cp, ranks}; }
  friend bool operator==(const Ring&, const Ring&) = default;
};

/// Causal attention over the whole sequence, of which every rank has a piece of the first and one of the second half
/// (head-tail load balancing). q [B, H, S, D], k and v [B, Hkv, S, D] of this rank, 16-bit; gives [B, H, S, D]. Partial
/// results are merged in float32.
Tensor ring_attention(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, const Ring& ring,
                      const AttentionBehaviour& behaviour);

}  // namespace qlp
