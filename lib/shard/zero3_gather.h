// Parameters that are gathered together, and what their gathering holds until each of them has been waited for
// (all_gather_coalesced and its handles in deepspeed/runtime/zero/partition_parameters.py, 0.18.3).
#pragma once

#include <map>
#include <vector>

#include "base/ref.h"
#include "shard/zero3_param.h"

namespace qlp {

class Zero3Gather final : public RefCounted {
 public:
  /// Begins to gather `params`, in the order of their numbers, on the current stream. Each of them holds the result in
  /// `inflight`.
  static void start(Context& ctx, std::vector<Zero3Param*> params, const Zero3Options& options);

  /// Several parameters lie in one buffer, rank by rank: each is copied out of it. The buffer stays while any of them
  /// has not been waited for by name.
  void wait(Context& ctx);

 private:
  explicit Zero3Gather(std::vector<Zero3Param*> params) : params_(std::move(params)) {}
  void gather_one(Context& ctx, const Zero3Options& options);
  void gather_several(Context& ctx, const Zero3Options& options);
  void sum_several(Context& ctx, const Zero3Options& options);

  /// Where a parameter's parts lie in what several were gathered into: `part` elements, `start` into the row of a rank.
  struct Place {
    Tensor flat;
    std::int64_t row = 0, start = 0, part = 0;
  };
  void copy_out(Context& ctx, const Zero3Param& param, const Tensor& whole) const;

  std::vector<Zero3Param*> params_;
  std::vector<Tensor> flat_;  ///< one per dtype
  std::map<const Zero3Param*, Place> places_;
  std::vector<Tensor> inputs_;  ///< copies of parts that are kept on the host, held for the collective
  bool complete_ = false;
};

/// Takes the parameter's gathering away from it, waits, and drops it.
void wait_for(Context& ctx, Zero3Param& param);

/// Gathers several at once into buffers of their own, on the current stream (_allgather_params_coalesced). Gives the
/// copies of parts from the host that are held until the next collective: only the last gathering is waited for.
std::vector<Tensor> gather_blocking(Context& ctx, const std::vector<Zero3Param*>& params, const Zero3Options& options);

}  // namespace qlp
