// What stays of a batch whose sequences ranks share, while its micro step lasts
// (torch/distributed/tensor/experimental/_context_parallel/_attention.py, context_parallel; 2.14).
#pragma once

#include <vector>

#include "tensor/context.h"
#include "tensor/work.h"

namespace qlp {

/// Tensors that nobody reads: the context manager's names hold them.
struct SplitBuffers {
  std::vector<Tensor> shards;
  Tensor last;
};

/// Of sequences of `length` the piece of one rank: one part of the first half, and its mirror image in the second
/// (_HeadTailLoadBalancer).
std::vector<double> balanced_piece(const std::vector<double>& whole, std::int64_t length, std::int64_t ranks,
                                   std::int64_t rank);

/// The Trainer gives ids, labels, labels moved by one and positions, `batch` [B, S] on the host: each goes to the GPU
/// whole and is cut there; the piece comes back.
SplitBuffers split_buffers(Context& ctx, const Shape& batch, const RankGroup& group);

}  // namespace qlp
