// The sharding plans by name.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "plan/mistakes.h"
#include "plan/sharding_plan.h"

namespace qlp {

/// The plans that can be estimated, in the order in which they are reported.
inline constexpr std::array<std::string_view, 14> kPlanNames{
    "single",
    "ddp",
    "fsdp1-full-shard",
    "fsdp1-shard-grad-op",
    "fsdp1-no-shard",
    "fsdp1-hybrid-shard",
    "fsdp1-hybrid-shard-zero2",
    "fsdp2",
    "fsdp2-no-reshard",
    "fsdp2-hsdp",
    "fsdp2-local-base",
    "zero1",
    "zero2",
    "zero3",
};

/// These, and the mistakes, which are planned on request.
inline constexpr auto kAllPlanNames = [] {
  std::array<std::string_view, kPlanNames.size() + kMistakes.size()> names{};
  for (std::size_t i = 0; i < kPlanNames.size(); ++i) names[i] = kPlanNames[i];
  for (std::size_t i = 0; i < kMistakes.size(); ++i) names[kPlanNames.size() + i] = kMistakes[i].name;
  return names;
}();

/// The plan of this name with its options at their defaults; none for any other name.
std::optional<NamedPlan> find_plan(std::string_view name);

}  // namespace qlp
