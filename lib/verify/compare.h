// What a rank measured, beside what was predicted for it.
#pragma once

#include <vector>

#include "estimate/rank_ledger.h"
#include "estimate/verification.h"
#include "verify/rank_measurement.h"

namespace qlp {

/// The prediction for one rank.
struct RankPrediction {
  RankReport report;
  std::vector<OutsideTerm> outside;
  Bytes used_by_others{};  ///< cluster.used_by_others
};

struct CompareOptions {
  bool alone = false;  ///< the rank was played by itself: no NCCL, and what it would take is the model's
};

/// The allocator's figures of every phase and of the run ("peak", "training_peak", "end"), then, where the device's
/// books were read, the terms outside the allocator and what the device held. The allocated figures are judged.
std::vector<ComparedFigure> compare(const RankMeasurement& measured, const RankPrediction& predicted,
                                    const CompareOptions& options = {});

}  // namespace qlp
