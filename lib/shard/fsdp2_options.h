// What shapes FSDP2 on a rank: the mesh, the precisions, how accelerate sets it up, and what the versions do.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "nn/module.h"
#include "tensor/work.h"

namespace qlp {

/// torch.distributed.fsdp.MixedPrecisionPolicy
struct MixedPrecisionPolicy {
  std::optional<DType> param_dtype, reduce_dtype, output_dtype;
  bool cast_forward_inputs = true;
};

/// reshard_after_forward: whether parameters are cut again after the forward pass, or the number of ranks (a factor of
/// those that they are sharded over) of which each then keeps its part until the backward pass.
using ReshardAfterForward = std::variant<bool, std::int64_t>;

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
  std::int64_t world_size = 1;  ///< ranks over which parameters are cut: the mesh, or its shard dimension
  std::int64_t rank = 0;        ///< among those
  std::int64_t replicas = 1;    ///< the replicate dimension (HSDP): gradients are reduced over it too
  std::int64_t stride = 1;      ///< neighbours on the mesh are so far apart: ranks that share a layer lie between
  bool cpu_offload = false;     ///< CPUOffloadPolicy: shards, their gradients and the optimizer are on the host
  bool pin_memory = true;       ///< shards and gradients there in page-locked memory
  /// Gradients are a mean over so many batches (set_gradient_divide_factor); 0: as many as ranks that reduce them.
  std::int64_t batches = 0;
  MixedPrecisionPolicy precision = {};
  Fsdp2Behaviour behaviour = {};

  RankGroup group() const { return {MeshAxis::dp_shard, world_size, stride}; }
  RankGroup world() const { return {MeshAxis::world, world_size * replicas * stride}; }
  RankGroup replicate_group() const { return {MeshAxis::dp_replicate, replicas, world_size * stride}; }
};

/// What becomes of parameters in 16 bit under mixed precision.
enum class Fsdp2Upcast : std::uint8_t {
  none,
  whole_model,        ///< accelerate 1.6 to 1.12: all shards become float32, frozen ones too
  lost,               ///< 1.13: trained ones are cast, and the casts dropped
  trained_parameters  ///< 1.14 on: before they are cut; not beside a 4-bit base
};

/// ignored_params: what every rank keeps whole, without reduction of its gradients.
enum class Fsdp2Ignored : std::uint8_t {
  none,
  quantized,  ///< packed 4-bit weights
  base,       ///< all that is frozen
  adapter,    ///< all that is trained beside a frozen base
};

/// Whether a weight is among those; `packed`: in 4 bits.
constexpr bool is_ignored(Fsdp2Ignored ignored, bool trained, bool packed) {
  switch (ignored) {
    case Fsdp2Ignored::none:
      return false;
    case Fsdp2Ignored::quantized:
      return packed;
    case Fsdp2Ignored::base:
      return !trained;
    case Fsdp2Ignored::adapter:
      return trained;
  }
  return false;
}

/// fsdp2_prepare_model by version and plan.
struct Fsdp2Preparation {
  /// transformers has cut the parameters as it loaded them (from_pretrained with a DistributedConfig, 5.24): its units
  /// take them as they are, and nothing of what follows applies but reshard_after_forward and the prefetching.
  bool cut_at_load = false;
  Fsdp2Upcast upcast = Fsdp2Upcast::none;
  ReshardAfterForward reshard_after_forward = true;
  /// Modules of which each is a unit (auto_wrap_policy); none: all layers are gathered together.
  std::vector<ModuleKind> wrapped{ModuleKind::decoder_layer};
  Fsdp2Ignored ignored = Fsdp2Ignored::none;
  /// Layers ahead that a layer starts to gather, by set_modules_to_forward_prefetch and .._backward_prefetch; 0:
  /// torch's own order.
  std::int64_t forward_prefetch = 0, backward_prefetch = 0;
  /// The optimizer holds empty tensors as large as its parameters while these are cut, else of one element.
  bool copies_in_optimizer = false;
  /// The embedding, and the final norm with the head, are units of their own (1.14 on). Before, the root holds them,
  /// and reshard_after_forward is said to it too.
  bool splits_root = true;
  /// The final norm is looked for among the children of the base model, where PEFT's wrapper hides it.
  bool finds_final_norm = true;
  /// RAM-efficient loading without 4-bit weights: cut on the meta device, then loaded from rank 0's state dict.
  bool loads_state_dict = false;
};

}  // namespace qlp
