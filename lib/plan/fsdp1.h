// FullyShardedDataParallel (FSDP1): units of flat parameters, cut over the ranks.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "plan/options.h"
#include "shard/fsdp1_options.h"

namespace qlp {

/// torch.distributed.fsdp.ShardingStrategy
enum class ShardingStrategy : std::uint8_t {
  full_shard,
  shard_grad_op,
  no_shard,
  hybrid_shard,
  hybrid_shard_zero2,  ///< _HYBRID_SHARD_ZERO2
};

/// FULL_SHARD and SHARD_GRAD_OP within each node, whose replicas sum their gradients.
constexpr bool is_hybrid(ShardingStrategy strategy) {
  return strategy == ShardingStrategy::hybrid_shard || strategy == ShardingStrategy::hybrid_shard_zero2;
}

/// Else parameters stay whole until the backward pass is through with them.
constexpr bool reshards_after_forward(ShardingStrategy strategy) {
  return strategy == ShardingStrategy::full_shard || strategy == ShardingStrategy::hybrid_shard;
}

struct Fsdp1 {
  ShardingStrategy sharding_strategy = ShardingStrategy::full_shard;
  bool use_orig_params = true;
  bool cpu_offload = false;  ///< CPUOffload(offload_params=True)
  BackwardPrefetch backward_prefetch = BackwardPrefetch::backward_pre;
  bool forward_prefetch = false;
  bool limit_all_gathers = true;
  /// None: as the Trainer sets it up, PEFT's policy where there is an adapter, else transformer_based_wrap.
  std::optional<WrapPolicy> auto_wrap_policy;
  /// Of transformer_based_wrap and of PEFT's policy. None: that of the decoder layers.
  std::optional<std::vector<std::string>> transformer_cls_names_to_wrap;
  std::int64_t min_num_params = 100'000'000;  ///< of size_based_wrap
  /// Nothing given: as accelerate makes it of the Trainer's flag, or of the 4-bit storage.
  MixedPrecision mixed_precision_policy;
  friend bool operator==(const Fsdp1&, const Fsdp1&) = default;
};

template <OptionsOf<MixedPrecision> P, class Visitor>
void visit_options(P& policy, Visitor&& visit) {
  visit.automatic("param_dtype", policy.param_dtype);
  visit.automatic("reduce_dtype", policy.reduce_dtype);
  visit.automatic("buffer_dtype", policy.buffer_dtype);
}

template <OptionsOf<Fsdp1> P, class Visitor>
void visit_options(P& plan, Visitor&& visit) {
  visit.named("sharding_strategy", plan.sharding_strategy);
  visit.option("use_orig_params", plan.use_orig_params);
  visit.option("cpu_offload", plan.cpu_offload);
  visit.option("backward_prefetch", plan.backward_prefetch);
  visit.option("forward_prefetch", plan.forward_prefetch);
  visit.option("limit_all_gathers", plan.limit_all_gathers);
  visit.automatic("auto_wrap_policy", plan.auto_wrap_policy);
  visit.automatic("transformer_cls_names_to_wrap", plan.transformer_cls_names_to_wrap);
  visit.option("min_num_params", plan.min_num_params, 1, std::numeric_limits<std::int64_t>::max());
  visit.section("mixed_precision_policy", plan.mixed_precision_policy);
}

}  // namespace qlp
