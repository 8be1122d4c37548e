// Which weights a plan spreads over the ranks.
#pragma once

#include "plan/sharding_plan.h"

namespace qlp {

/// What a weight is, as far as a plan asks.
struct WeightTraits {
  bool trained = false;
  bool packed = false;  ///< in 4 bits
};

/// Whether each rank holds only its part of such a weight between uses; else every rank holds the whole.
constexpr bool is_sharded(const ShardingPlan& plan, const WeightTraits& weight) {
  if (const auto* fsdp1 = std::get_if<Fsdp1>(&plan)) return fsdp1->sharding_strategy != ShardingStrategy::no_shard;
  if (const auto* fsdp2 = std::get_if<Fsdp2>(&plan))
    return !is_ignored(fsdp2->ignored_params, weight.trained, weight.packed);
  const auto* zero = std::get_if<Zero>(&plan);  // the least parameters aside, which stage 3 keeps whole
  return zero && zero->stage == 3;
}

}  // namespace qlp
