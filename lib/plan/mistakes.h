// Set-ups that people fall into, planned on request so that they can see what they cost.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "plan/sharding_plan.h"

namespace qlp {

struct Mistake {
  std::string_view name;   ///< "mistake:base-unsharded"
  std::string_view right;  ///< the plan that was meant
  std::string_view what;   ///< one clause
};

inline constexpr std::array<Mistake, 6> kMistakes{{
    {"mistake:base-unsharded", "fsdp2", "the base is left out of fully_shard: every rank holds it whole"},
    {"mistake:adapter-unsharded", "fsdp2",
     "the adapter is left out of fully_shard: every rank holds it whole, with gradients and optimizer state"},
    {"mistake:no-wrap-policy", "fsdp2", "no layer is a unit of its own: all of them are gathered at once"},
    {"mistake:fsdp1-no-wrap-policy", "fsdp1-full-shard",
     "no layer is a unit of its own: the model is one flat parameter"},
    {"mistake:mixed-units", "fsdp1-full-shard",
     "frozen and trained parameters are in one flat parameter, whose gradient is as large as both"},
    {"mistake:float32", "fsdp2", "every parameter is cast to float32, the frozen base too"},
}};

/// None for any other name.
const Mistake* find_mistake(std::string_view name);

/// The plan that the mistake amounts to.
ShardingPlan plan_of(const Mistake& mistake);

}  // namespace qlp
