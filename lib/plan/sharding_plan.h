// How a job is spread over its ranks: one plain struct per runtime, with that runtime's own option names.
#pragma once

#include <string>
#include <variant>

#include "plan/ddp.h"
#include "plan/fsdp1.h"
#include "plan/fsdp2.h"
#include "plan/zero.h"
#include "plan/zero_keys.h"

namespace qlp {

struct Single {
  friend bool operator==(const Single&, const Single&) = default;
};

template <OptionsOf<Single> P, class Visitor>
void visit_options(P&, Visitor&&) {}

using ShardingPlan = std::variant<Single, Ddp, Fsdp1, Fsdp2, Zero>;

/// A plan under the name that users and reports know it by: "fsdp2-no-reshard".
struct NamedPlan {
  std::string name;
  ShardingPlan plan;
  friend bool operator==(const NamedPlan&, const NamedPlan&) = default;
};

}  // namespace qlp
