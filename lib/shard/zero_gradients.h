// Gradients under ZeRO-1 and 2 on their way to the rank that keeps them: copied into a bucket as they come, summed over
// the ranks bucket by bucket (deepspeed/runtime/zero/stage_1_and_2.py, 0.18.3).
#pragma once

#include <memory>
#include <vector>

#include "shard/zero_group.h"

namespace qlp {

/// Hooks on the parameters refer to it: it stays where it is, and outlives their gradients.
class ZeroGradients {
 public:
  /// Hangs hooks on all parameters of the groups.
  ZeroGradients(Context& ctx, std::vector<std::unique_ptr<ZeroGroup>>& groups, const ZeroOptions& options);
  ZeroGradients(const ZeroGradients&) = delete;
  ZeroGradients& operator=(const ZeroGradients&) = delete;

  /// is_gradient_accumulation_boundary: this backward pass is the last before a step.
  void set_boundary(bool boundary) { boundary_ = boundary; }
  /// When the backward pass is over: what the buckets still hold goes its way, and the groups get their gradients.
  void finish_backward(Context& ctx);
  /// With offload: whether a gradient that this rank has sent to the host since the last step was not finite
  /// (local_overflow).
  bool overflowed() const { return overflowed_; }
  void forget_overflow() { overflowed_ = false; }

 private:
  struct Entry {
    ZeroGroup* group;
    std::size_t index;
    Tensor accumulated;  ///< grad_accum: the gradient in the dtype that micro steps are added up in
    Tensor on_host;      ///< with offload, of the micro steps so far
  };
  /// Elements that belong to one rank.
  struct Stretch {
    std::int64_t rank = 0, start = 0, numel = 0;
  };
  using Slices = std::vector<Stretch>;

  void gradient_ready(Context& ctx, Entry& entry);
  void setup_buckets(Context& ctx);
  void accumulate_apart(Context& ctx, Entry& entry) const;
  void put_in_bucket(Context& ctx, Entry& entry);
  void reduce_bucket(Context& ctx);
  void average(Context& ctx);
  void average_slices(Context& ctx, const Tensor& bucket, const Slices& slices, Collective kind);
  void reduce(Context& ctx, const std::vector<Tensor>& pieces, Collective kind, std::int64_t root) const;
  static void copy_pieces(Context& ctx, const Tensor& flat, const std::vector<Tensor>& pieces, bool in);
  static void move_to(Context& ctx, const Tensor& grad, const Tensor& buffer, std::int64_t start);
  void all_reduce_whole_gradients(Context& ctx);
  void keep(Context& ctx, Entry& entry);
  void accumulate_on_host(Context& ctx, Entry& entry) const;
  void offload(Context& ctx, Entry& entry);
  void clear_previous();
  void collect(Context& ctx, ZeroGroup& group);
  void release_buckets();

  const Tensor& tensor(const Entry& entry) const { return entry.group->tensor(entry.index); }
  bool mine(const Entry& entry) const { return entry.group->has(options_.rank, entry.index); }
  Tensor gradient_to_reduce(Context& ctx, const Entry& entry) const;
  Tensor kept_gradient(const Entry& entry) const;
  /// The part of a gradient that this rank keeps.
  Stretch mine_of(const Entry& entry) const;
  void clear(Entry& entry) const;
  StreamId reduction_stream(const Context& ctx) const {
    return options_.overlap_comm ? zero_stream::kReduction : ctx.stream;
  }

  ZeroOptions options_;
  std::vector<std::unique_ptr<ZeroGroup>>& groups_;
  std::vector<Entry> entries_;  ///< all parameters, group by group
  DType dtype_;                 ///< of the first parameter
  bool accumulates_apart_;      ///< use_grad_accum_attribute
  bool boundary_ = true;
  bool first_ = true;  ///< micro step since the last boundary
  bool overflowed_ = false;
  bool ready_ = false;  ///< ready_for_gradients

  std::vector<Tensor> buckets_;  ///< two with overlap_comm
  std::size_t current_ = 0;
  std::int64_t elements_ = 0;
  std::vector<Entry*> pending_;     ///< in the bucket
  std::vector<Tensor> copies_;      ///< bucket.grads, where they lie by themselves
  std::vector<Entry*> previous_;    ///< reduced, cleared when the next reduction begins
  Tensor in_partition_;             ///< grads_in_partition
  std::int64_t kept_elements_ = 0;  ///< in it
  Tensor host_buffer_;              ///< temp_grad_buffer_for_cpu_offload
  Tensor gpu_buffer_;               ///< temp_grad_buffer_for_gpu_offload
};

}  // namespace qlp
