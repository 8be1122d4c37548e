#include "plan/mistakes.h"

#include <algorithm>

namespace qlp {

const Mistake* find_mistake(std::string_view name) {
  const auto found = std::find_if(kMistakes.begin(), kMistakes.end(), [&](const Mistake& m) { return m.name == name; });
  return found == kMistakes.end() ? nullptr : &*found;
}

ShardingPlan plan_of(const Mistake& mistake) {
  if (mistake.name == "mistake:base-unsharded") return Fsdp2{.ignored_params = Fsdp2Ignored::base};
  if (mistake.name == "mistake:adapter-unsharded") return Fsdp2{.ignored_params = Fsdp2Ignored::adapter};
  if (mistake.name == "mistake:no-wrap-policy") return Fsdp2{.auto_wrap_policy = Fsdp2Wrap::no_wrap};
  if (mistake.name == "mistake:fsdp1-no-wrap-policy") return Fsdp1{.auto_wrap_policy = WrapPolicy::no_wrap};
  if (mistake.name == "mistake:mixed-units") return Fsdp1{.auto_wrap_policy = WrapPolicy::transformer_based_wrap};
  return Fsdp2{.casts_to_float32 = true};
}

}  // namespace qlp
