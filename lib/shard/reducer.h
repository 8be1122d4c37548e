// The averaging of gradients in buckets (torch/csrc/distributed/c10d/reducer.cpp, torch 2.4 to 2.14).
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/node.h"
#include "shard/coalesced.h"

namespace qlp {

/// How c10d keeps buckets that others replace.
enum class ReplacedBuckets : std::uint8_t {
  recorded,  ///< until their sum is done (recordStream, before torch 2.8)
  /// Until the first collective after its watchdog has looked, which it does every 100 ms (ProcessGroupNCCL.cpp,
  /// shelvesToUnstash_): a race, which the next backward pass mostly ends, as is taken here.
  held,
  dropped,  ///< the same, over before they are replaced: many passes of a pipeline lie between
};

struct ReducerOptions {
  std::int64_t world_size = 1;
  RankGroup group() const { return {MeshAxis::dp_replicate, world_size}; }
  std::int64_t bucket_cap_mb = 25;  ///< 25 is the default, with which the first bucket is closed at 1 MiB
  bool gradient_as_bucket_view = false;
  ReplacedBuckets replaced = ReplacedBuckets::recorded;
};

/// With find_unused_parameters off. Hooks on the parameters refer to the reducer: it stays where it is, and outlives
/// their gradients.
class Reducer {
 public:
  /// Verifies the shapes of `parameters` across ranks, broadcasts `states` (all parameters and buffers), and makes one
  /// bucket per dtype.
  Reducer(Context& ctx, const ReducerOptions& options, const std::vector<Tensor>& states,
          std::vector<Tensor> parameters);
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// no_sync() while off: gradients stay what they are.
  void set_sync(bool sync) { sync_ = sync; }
  bool syncs() const { return sync_; }
  /// Before a forward pass. Once, after the first backward pass that synchronised, buckets are made anew in the order
  /// in which gradients became ready. The old ones go first, but wait for the stream of the collectives.
  void prepare_forward(Context& ctx);

 private:
  void verify_shapes(Context& ctx) const;
  /// Buckets of parameters that come in `order`: their places in parameters_.
  std::vector<Bucket> assign(const std::vector<std::size_t>& order, const std::vector<std::uint64_t>& limits) const;
  void make_buckets(Context& ctx, const std::vector<Bucket>& buckets);
  void gradient_ready(Context& ctx, std::size_t index);
  void finalize_backward(Context& ctx);

  ReducerOptions options_;
  std::vector<Tensor> parameters_;
  std::vector<Ref<Node>> accumulators_;  ///< kept alive, with a hook on each
  std::vector<Tensor> buckets_;          ///< flat
  std::vector<std::size_t> bucket_of_;   ///< of each parameter
  std::vector<std::size_t> pending_;     ///< gradients that a bucket waits for before it is summed over the ranks
  std::size_t summed_ = 0;               ///< buckets, in this backward pass
  std::vector<std::size_t> members_;     ///< parameters in each bucket
  std::vector<Tensor> replaced_;         ///< the buckets before, as far as they are held
  std::vector<Tensor> views_;            ///< of the buckets, one per parameter
  std::vector<std::size_t> ready_order_;
  bool sync_ = true;
  bool rebuilt_ = false;
};

}  // namespace qlp
