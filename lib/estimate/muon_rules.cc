#include "estimate/muon_rules.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "base/refusal.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/weight_list.h"

namespace qlp {
namespace {

/// What DTensor reckons that a collective takes, in microseconds, by which it chooses how to cut a product
/// (torch/distributed/tensor/_collective_utils.py, MeshTopoInfo, allgather_cost and the two behind it, 2.14).
class ReckonedCost {
 public:
  ReckonedCost(std::int64_t ranks, std::int64_t ranks_per_node)
      : ranks_(static_cast<double>(ranks)), far_(ranks > ranks_per_node) {}

  double all_gather(double bytes) const { return kBase + (ranks_ - 1) * latency() + sent(bytes); }
  double reduce_scatter(double bytes) const { return all_gather(bytes); }
  double all_reduce(double bytes) const { return kBase + 2 * (ranks_ - 1) * latency() + 2 * sent(bytes); }
  double all_to_all(double bytes) const { return all_gather(bytes / ranks_) + 1; }

 private:
  static constexpr double kBase = 6.6;
  double latency() const { return far_ ? 2.7 : 0.6; }
  double sent(double bytes) const {
    constexpr double kGiB = 1 << 30, kNear = 87.7, kFar = kNear * 0.22, kMicroseconds = 1e6;
    return bytes / kGiB * (ranks_ - 1) / ranks_ / (far_ ? kFar : kNear) * kMicroseconds;
  }

  double ranks_;
  bool far_;
};

/// Whether the products of a matrix [rows, columns] are cut as optim/muon.cc has it: the shorter dimension is gathered,
/// sums over the ranks are worked out whole.
bool cut_as_planned(std::int64_t rows, std::int64_t columns, const ReckonedCost& cost) {
  constexpr double kBfloat16 = 2;
  const double matrix = static_cast<double>(rows * columns) * kBfloat16;
  const double gram = static_cast<double>(columns * columns) * kBfloat16;
  if (rows <= columns) return cost.all_gather(matrix) <= 2 * cost.all_to_all(matrix);
  return cost.all_reduce(gram) <= cost.reduce_scatter(gram) + cost.all_to_all(matrix);
}

}  // namespace

Diagnostics check_muon(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack, std::string_view key) {
  Diagnostics refusals;
  const auto refuse = [&](std::string code, std::string message, std::string hint) {
    refusals.push_back(refusal(std::move(code), std::move(message), std::string(key), std::move(hint)));
  };
  if (!stack.optimizers.torch_has_muon())
    refuse("optimizer-not-in-stack", "torch has Muon from 2.9 on", "take a newer stack");
  Weights trained = list_weights(job, stack.load);
  std::erase_if(trained, [](const ListedWeight& weight) { return !weight.trained; });
  if (std::ranges::any_of(trained, &ListedWeight::vector))
    refuse("muon-on-vectors", "'Muon only supports 2D parameters', and norms, biases or magnitudes are trained",
           "train LoRA adapters, or take adamw_torch");
  const auto* fsdp2 = std::get_if<Fsdp2>(&plan);
  const bool whole = std::holds_alternative<Single>(plan) || std::holds_alternative<Ddp>(plan) ||
                     (fsdp2 && fsdp2->ignored_params == Fsdp2Ignored::adapter);
  if (whole) return refusals;
  if (!fsdp2) {
    refuse("muon-on-flat-parameters", "'Param gradient must be a 2D matrix': this plan hands Muon flat parameters",
           "take adamw_torch, or plan ddp");
    return refusals;
  }
  const std::int64_t ranks = shard_ranks(job, *fsdp2);
  const ReckonedCost cost(ranks, job.cluster.gpus_per_node);
  if (job.stack.torch < Version{2, 14, 0} || job.cluster.mesh != Mesh{})
    refuse("muon-on-dtensor",
           "what Muon's products of DTensors gather is worked out from torch 2.14 on, and beside no other mesh",
           "take adamw_torch, or plan ddp");
  else if (std::ranges::any_of(trained, [&](const ListedWeight& weight) { return weight.rows < ranks; }))
    refuse("muon-few-rows",
           "a matrix with fewer rows than ranks share it comes out of Muon's products cut otherwise: 'in-place "
           "operations that require placement changes are not supported'",
           "take a larger rank, fewer GPUs, or adamw_torch");
  else if (!std::ranges::all_of(
               trained, [&](const ListedWeight& weight) { return cut_as_planned(weight.rows, weight.width, cost); }))
    refuse("muon-large-matrix",
           "where matrices are so large torch exchanges parts of them for Muon's products instead of gathering them, "
           "which is not worked out",
           "take a smaller rank, adamw_torch, or plan ddp");
  return refusals;
}

}  // namespace qlp
