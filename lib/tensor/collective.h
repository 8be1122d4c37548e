// Records of communication: where a runtime calls torch.distributed, or copies between host and GPU, it says so here.
#pragma once

#include <cstdint>

#include "tensor/context.h"

namespace qlp {

/// This rank takes part in a collective of `group`; `bytes` as in CollectiveEvent. A group of one sends nothing.
void communicate(Context& ctx, Collective kind, const RankGroup& group, std::uint64_t bytes);
/// The same for the tensor that is the whole.
void communicate(Context& ctx, Collective kind, const RankGroup& group, const Tensor& whole);

/// Bytes go to the GPU, or from it, beside those of to_device() and to_host().
void copy_to_device(Context& ctx, std::uint64_t bytes);
void copy_to_host(Context& ctx, std::uint64_t bytes);

}  // namespace qlp
