#include "plan/catalogue.h"

#include <string>

namespace qlp {

std::optional<NamedPlan> find_plan(std::string_view name) {
  const auto named = [&](const ShardingPlan& plan) { return NamedPlan{std::string(name), plan}; };
  if (name == "single") return named(Single{});
  if (name == "ddp") return named(Ddp{});
  if (name == "fsdp1-full-shard") return named(Fsdp1{.sharding_strategy = ShardingStrategy::full_shard});
  if (name == "fsdp1-shard-grad-op") return named(Fsdp1{.sharding_strategy = ShardingStrategy::shard_grad_op});
  if (name == "fsdp1-hybrid-shard") return named(Fsdp1{.sharding_strategy = ShardingStrategy::hybrid_shard});
  if (name == "fsdp1-hybrid-shard-zero2")
    return named(Fsdp1{.sharding_strategy = ShardingStrategy::hybrid_shard_zero2});
  if (name == "fsdp1-no-shard") return named(Fsdp1{.sharding_strategy = ShardingStrategy::no_shard});
  if (name == "fsdp2") return named(Fsdp2{});
  if (name == "fsdp2-no-reshard") return named(Fsdp2{.reshard_after_forward = false});
  if (name == "fsdp2-hsdp") return named(Fsdp2{.hybrid = true});
  if (name == "fsdp2-local-base") return named(Fsdp2{.ignored_params = Fsdp2Ignored::quantized});
  if (name == "zero1") return named(Zero{.stage = 1});
  if (name == "zero2") return named(Zero{.stage = 2});
  if (name == "zero3") return named(Zero{.stage = 3, .overlap_comm = true});
  if (const Mistake* mistake = find_mistake(name)) return named(plan_of(*mistake));
  return std::nullopt;
}

}  // namespace qlp
