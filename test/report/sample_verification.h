// A verification of two ranks by hand: one as predicted, one that is off.
#pragma once

#include "estimate/verification.h"

namespace qlp {

inline ComparedFigure sample_figure(const std::string& name, const std::string& phase, std::uint64_t measured,
                                    std::uint64_t predicted) {
  return {name, phase, Bytes{measured}, Bytes{predicted}, "counters of the allocator", name == "allocated"};
}

inline Verification sample_verification() {
  Verification v;
  v.plan = "ddp";
  v.device = VerifyDevice::cuda;
  v.world_size = 2;
  v.steps = 2;
  v.tolerance = {.bytes = Bytes{}, .share = 0.01};
  v.versions = {"driver 580.65.06"};
  RankVerification rank;
  rank.end = RankEnd::finished;
  rank.state = "end";
  rank.device = "NVIDIA H200";
  rank.figures = {sample_figure("allocated", "peak", 1'005'000, 1'000'000),
                  sample_figure("reserved", "peak", 2'097'152, 2'097'152),
                  sample_figure("allocated", "micro1.forward", 900'000, 900'000),
                  sample_figure("cuda_context", "peak", 545'000'000, 545'259'520),
                  {"nccl", "peak", std::nullopt, Bytes{508'000'000}, "taken from the model", false},
                  sample_figure("reserved", "micro1.forward", 2'097'152, 2'097'152)};
  rank.losses = {6.5, 6.25};
  rank.gradient_norms = {1.5};
  v.ranks = {rank, rank};
  v.ranks[1].rank = 1;
  return v;
}

}  // namespace qlp
