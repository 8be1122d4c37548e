// How a job is spread over its ranks: one plain struct per runtime, with that runtime's own option names.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace qlp {

struct Single {
  friend bool operator==(const Single&, const Single&) = default;
};

struct Ddp {
  std::int64_t bucket_cap_mb = 25;
  bool gradient_as_bucket_view = false;
  friend bool operator==(const Ddp&, const Ddp&) = default;
};

/// torch.distributed.fsdp.ShardingStrategy
enum class ShardingStrategy : std::uint8_t { full_shard, no_shard };

struct Fsdp1 {
  ShardingStrategy sharding_strategy = ShardingStrategy::full_shard;
  bool use_orig_params = true;
  friend bool operator==(const Fsdp1&, const Fsdp1&) = default;
};

struct Fsdp2 {
  bool reshard_after_forward = true;
  /// The 4-bit base is whole on every rank (ignored_params); only float parameters are sharded.
  bool local_base = false;
  friend bool operator==(const Fsdp2&, const Fsdp2&) = default;
};

using ShardingPlan = std::variant<Single, Ddp, Fsdp1, Fsdp2>;

/// A plan under the name that users and reports know it by: "fsdp2-no-reshard".
struct NamedPlan {
  std::string name;
  ShardingPlan plan;
  friend bool operator==(const NamedPlan&, const NamedPlan&) = default;
};

}  // namespace qlp
