// What shapes FSDP2 on a rank: the mesh, the precisions, how accelerate sets it up, and what the versions do.
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"
#include "tensor/work.h"

namespace qlp {

/// torch.distributed.fsdp.MixedPrecisionPolicy, with cast_forward_inputs on, as it is by default.
struct MixedPrecisionPolicy {
  std::optional<DType> param_dtype, reduce_dtype, output_dtype;
};

/// torch.distributed.fsdp._fully_shard by version.
struct Fsdp2Behaviour {
  /// An explicit reshard_after_forward=True holds for the root too (2.8, PR 154704).
  bool root_obeys_reshard = true;
  /// A mesh of one rank gathers nothing: parameters are copied straight from their shards (2.9, PR 160135).
  bool copies_on_one_rank = true;
  /// A forward pass inside of the backward pass (recomputation) does not reshard (2.10, PR 164009).
  bool keeps_recomputed = true;
  /// The input of a reduce-scatter goes at the next group that ends, also if that one has no gradients (2.12,
  /// PR 177319).
  bool drops_reduced_early = true;
  /// Inputs are cast in a recomputation too, and each module of a group casts (2.14; not in 2.8).
  bool casts_everywhere = true;
  /// Clipping: the norms of all gradients are summed over the ranks before their common norm is taken, where it was
  /// that one that was summed (DTensor's sharding of vector_norm; 2.14, not in 2.8).
  bool reduces_norms_first = true;
};

struct Fsdp2Options {
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  RankGroup group() const { return {MeshAxis::dp_shard, world_size}; }
  MixedPrecisionPolicy precision = {};
  Fsdp2Behaviour behaviour = {};
};

/// What becomes of parameters in 16 bit under mixed precision.
enum class Fsdp2Upcast : std::uint8_t {
  none,
  whole_model,        ///< accelerate 1.6 to 1.12: all shards become float32, frozen ones too
  lost,               ///< 1.13: trained ones are cast, and the casts dropped
  trained_parameters  ///< 1.14 on: before they are cut; not beside a 4-bit base
};

/// fsdp2_prepare_model by version and plan.
struct Fsdp2Preparation {
  Fsdp2Upcast upcast = Fsdp2Upcast::none;
  bool reshard_after_forward = true;
  /// The optimizer holds empty tensors as large as its parameters while these are cut, else of one element.
  bool copies_in_optimizer = false;
  /// The embedding, and the final norm with the head, are units of their own (1.14 on). Before, the root holds them,
  /// and reshard_after_forward is said to it too.
  bool splits_root = true;
  /// The final norm is looked for among the children of the base model, where PEFT's wrapper hides it.
  bool finds_final_norm = true;
  /// Packed 4-bit weights stay whole on every rank (ignored_params).
  /// RAM-efficient loading without 4-bit weights: cut on the meta device, then loaded from rank 0's state dict.
  bool loads_state_dict = false;
  bool ignores_quantized = false;
};

}  // namespace qlp
