// fully_shard (FSDP2): every parameter is cut by itself, gathered by groups.
#pragma once

#include "plan/options.h"

namespace qlp {

struct Fsdp2 {
  bool reshard_after_forward = true;
  /// The 4-bit base is whole on every rank (ignored_params); only float parameters are sharded.
  bool local_base = false;
  friend bool operator==(const Fsdp2&, const Fsdp2&) = default;
};

template <OptionsOf<Fsdp2> P, class Visitor>
void visit_options(P& plan, Visitor&& visit) {
  if (plan.local_base)
    visit.option("reshard_after_forward", plan.reshard_after_forward);
  else
    visit.named("reshard_after_forward", plan.reshard_after_forward);
  visit.named("local_base", plan.local_base);
}

}  // namespace qlp
