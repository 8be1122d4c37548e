// FullyShardedDataParallel (FSDP1): units of flat parameters, cut over the ranks.
#pragma once

#include <cstdint>

#include "plan/options.h"

namespace qlp {

/// torch.distributed.fsdp.ShardingStrategy
enum class ShardingStrategy : std::uint8_t { full_shard, no_shard };

struct Fsdp1 {
  ShardingStrategy sharding_strategy = ShardingStrategy::full_shard;
  bool use_orig_params = true;
  friend bool operator==(const Fsdp1&, const Fsdp1&) = default;
};

template <OptionsOf<Fsdp1> P, class Visitor>
void visit_options(P& plan, Visitor&& visit) {
  visit.named("sharding_strategy", plan.sharding_strategy);
  visit.option("use_orig_params", plan.use_orig_params);
}

}  // namespace qlp
