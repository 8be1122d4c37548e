// What PyTorch does, by version, outside of its sharding runtimes.
#pragma once

#include <cstdint>

#include "memory/host_memory.h"
#include "plan/stack_versions.h"

namespace qlp {

class TorchStack {
 public:
  explicit TorchStack(const StackVersions& versions) : torch_(versions.torch) {}

  /// CUDA toolkit of PyTorch's wheels on PyPI: 12.1 in 2.4, 12.8 in 2.8, 13.0 in 2.14; the turns lie between.
  std::uint32_t cuda_toolkit() const {
    if (torch_ < Version{2, 8, 0}) return 121;
    return torch_ < Version{2, 11, 0} ? 128 : 130;
  }
  /// cuBLASLt works in the workspace of the cuBLAS handle, and that is large on every GPU since Hopper: so in
  /// torch 2.14, not in 2.8 (CublasHandlePool.cpp, CUDABlas.cpp).
  bool newer_cublas_workspaces() const { return torch_ >= Version{2, 9, 0}; }
  /// The caching host allocator keeps a list of free blocks for each power of two: so in torch 2.8, in 2.4 one for all
  /// (ATen/core/CachingHostAllocator.h, get_free_block).
  PinnedReuse pinned_reuse() const {
    return torch_ < Version{2, 6, 0} ? PinnedReuse::large_enough : PinnedReuse::same_size;
  }
  /// NCCL collectives run on a stream of their own, on which they record their tensors; from 2.8 on they run on the
  /// stream that calls them. torch ProcessGroupNCCL.cpp (pytorch/pytorch 148590).
  bool collectives_have_own_stream() const { return torch_ < Version{2, 8, 0}; }
  /// SDPA takes cuDNN before FlashAttention on Hopper; seen in 2.14, not in 2.8
  /// (ATen/native/transformers/cuda/sdp_utils.cpp).
  bool prefers_cudnn_attention() const { return torch_ >= Version{2, 9, 0}; }
  /// torch.nn.functional.grouped_mm is there, for compute capability 8.0 and newer. torch 2.10.
  bool groups_matrices() const { return torch_ >= Version{2, 10, 0}; }
  /// The ring of context_parallel was looked at in 2.8 and 2.14 (torch/distributed/tensor/experimental).
  bool shares_sequences() const { return torch_ >= Version{2, 8, 0}; }
  /// context_parallel cuts its buffers as DTensors of the GPUs' mesh; in 2.8 it cuts them where they are.
  bool splits_sequences_on_device() const { return torch_ >= Version{2, 9, 0}; }

 private:
  Version torch_;
};

}  // namespace qlp
