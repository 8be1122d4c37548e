// DistributedDataParallel: every rank holds the whole model, gradients are averaged in buckets.
#pragma once

#include <cstdint>

#include "plan/options.h"

namespace qlp {

struct Ddp {
  std::int64_t bucket_cap_mb = 25;
  bool gradient_as_bucket_view = false;
  friend bool operator==(const Ddp&, const Ddp&) = default;
};

template <OptionsOf<Ddp> P, class Visitor>
void visit_options(P& plan, Visitor&& visit) {
  constexpr std::int64_t kLargestBucket = 1 << 20;
  visit.option("bucket_cap_mb", plan.bucket_cap_mb, 1, kLargestBucket);
  visit.option("gradient_as_bucket_view", plan.gradient_as_bucket_view);
}

}  // namespace qlp
