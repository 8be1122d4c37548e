// What a rank might have measured: a small run by hand.
#pragma once

#include "verify/rank_measurement.h"

namespace qlp {

inline LedgerFigures sample_figures(std::uint64_t mib) {
  const Bytes bytes{mib << 20};
  return {.requested = Bytes{bytes.count() - 100}, .allocated = bytes, .active = bytes, .reserved = bytes + bytes};
}

inline RankMeasurement sample_measurement() {
  RankMeasurement out;
  out.device = {.name = "NVIDIA H200",
                .host = "node-1",
                .capacity = Bytes{std::uint64_t{143156} << 20},
                .used_by_others = Bytes{1 << 20},
                .versions = {"driver 580.65.06", "NCCL 2.28.9"}};
  out.phases = {{"load", sample_figures(10), sample_figures(10)},
                {"micro1.forward", sample_figures(30), sample_figures(20)}};
  out.readings = {{.point = "context", .used = Bytes{520 << 20}, .segments = Bytes{}, .source = "cudaMemGetInfo"},
                  {.point = "step1",
                   .used = Bytes{700 << 20},
                   .segments = Bytes{60 << 20},
                   .by_process = Bytes{699 << 20},
                   .source = "cudaMemGetInfo"}};
  out.communicators = {{.ranks = 2, .ranks_per_node = 2, .all_reduce = true, .bytes = Bytes{484 << 20}}};
  out.losses = {6.5, 6.25};
  out.gradient_norms = {1.5};
  out.skipped_steps = {1};
  return out;
}

}  // namespace qlp
