// DistributedDataParallel: every rank holds everything; gradients are averaged in buckets
// (torch/nn/parallel/distributed.py, torch/csrc/distributed/c10d/reducer.cpp, torch 2.4 to 2.14).
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/node.h"
#include "shard/coalesced.h"
#include "shard/sharding_runtime.h"

namespace qlp {

struct DdpOptions {
  std::int64_t world_size = 1;
  std::int64_t bucket_cap_mb = 25;  ///< 25 is the default, with which the first bucket is closed at 1 MiB
  bool gradient_as_bucket_view = false;
};

/// With find_unused_parameters off, as the Trainer sets it for models that checkpoint.
class DdpRuntime final : public ShardingRuntime {
 public:
  explicit DdpRuntime(const DdpOptions& options) : options_(options) {}

  /// The constructor: shapes are verified, parameters and buffers broadcast, one bucket per dtype is made.
  void prepare(Context& ctx, CausalLm& model) override;
  void begin_micro_step(Context& ctx, bool sync) override;
  /// Buckets are made anew once, in the order in which gradients became ready; buffers are broadcast.
  CausalLmOutput forward(Context& ctx, CausalLm& model, const Tensor& ids, const Tensor& labels,
                         const Tensor& num_items, const RunOptions& options) override;

 private:
  void verify_shapes(Context& ctx) const;
  /// Buckets of parameters that come in `order`: their places in parameters_.
  std::vector<Bucket> assign(const std::vector<std::size_t>& order, const std::vector<std::uint64_t>& limits) const;
  void make_buckets(Context& ctx, const std::vector<Bucket>& buckets);
  void rebuild_buckets(Context& ctx);
  void gradient_ready(std::size_t index);

  DdpOptions options_;
  std::vector<Tensor> parameters_;       ///< trained ones
  std::vector<Tensor> module_buffers_;
  std::vector<Ref<Node>> accumulators_;  ///< kept alive, with a hook on each
  std::vector<Tensor> buckets_;          ///< flat
  std::vector<Tensor> views_;            ///< of the buckets, one per parameter
  std::vector<std::size_t> ready_order_;
  bool sync_ = true;
  bool rebuilt_ = false;
};

}  // namespace qlp
