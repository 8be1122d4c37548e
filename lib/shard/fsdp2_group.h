// Parameters that are gathered and reduced together (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py).
#pragma once

#include <cstddef>
#include <vector>

#include "shard/fsdp2_collectives.h"

namespace qlp {

class Fsdp2Group;

/// FSDPCommContext: what the groups of a model share.
struct Fsdp2Comm {
  /// The last gathered buffer of the forward pass, kept until the next group has copied out of its own.
  Tensor all_gather_state;
  /// The input of the last reduce-scatter, kept until the next one.
  Tensor reduce_scatter_state;
  std::vector<Fsdp2Group*> post_forward_order;
};

/// TrainingState
enum class Fsdp2Phase : std::uint8_t { idle, forward, pre_backward, post_backward };

class Fsdp2Group {
 public:
  Fsdp2Group(std::vector<Fsdp2Param> params, const ReshardAfterForward& reshard, const Fsdp2Options& options,
             Fsdp2Comm& comm);

  std::vector<Fsdp2Param>& params() { return params_; }
  Fsdp2Phase phase() const { return phase_; }
  void set_reduces(bool reduces) { reduces_ = reduces; }
  void set_reshards_after_backward(bool reshards) { reshards_after_backward_ = reshards; }

  /// Gathers. Gives `input` with a node behind it that ends the backward pass of the group, if a gradient passes there.
  Tensor pre_forward(Context& ctx, const Tensor& input);
  void post_forward(Context& ctx);
  /// Gathers what was resharded, and, unless told which groups are next, starts to gather the one that ran before this.
  void pre_backward(Context& ctx, bool prefetches);
  /// Reshards, and reduces the gradients.
  void post_backward(Context& ctx);
  /// The end of a backward pass that is not the last one.
  void end_pass() { phase_ = Fsdp2Phase::idle; }
  /// The end of a backward pass.
  void finalize(Context& ctx);
  /// Starts to gather, as in `phase`.
  void prefetch(Context& ctx, Fsdp2Phase phase);
  /// In a recomputation of torch 2.14: gathers if somebody has resharded.
  void gather_if_sharded(Context& ctx);
  /// Drops what is gathered, if this pass gives it up.
  void reshard(Context& ctx);

 private:
  void unshard(Context& ctx);
  void wait_for_unshard(Context& ctx);
  void wait_for_reductions(Context& ctx) const;
  void prefetch_previous(Context& ctx);
  std::vector<UnshardedGrad> take_grads(Context& ctx);
  /// The ranks that each hold a part of what is sharded now.
  RankGroup shard_group() const {
    return {MeshAxis::dp_shard, sharded_post_forward_ ? post_forward_ranks_ : options_.world_size, options_.stride};
  }
  bool gathers() const { return options_.world_size > 1 || !options_.behaviour.copies_on_one_rank; }

  std::vector<Fsdp2Param> params_;
  bool reshard_after_forward_ = true;
  std::int64_t post_forward_ranks_;  ///< over which parameters are cut after the forward pass
  const Fsdp2Options& options_;
  Fsdp2Comm& comm_;
  Fsdp2Phase phase_ = Fsdp2Phase::idle;
  bool unsharded_ = false;
  bool sharded_post_forward_ = false;
  bool gathering_ = false;  ///< unshard was called, wait_for_unshard was not
  bool reduces_ = true;
  bool reshards_after_backward_ = true;
  Tensor gathered_;
  Tensor all_reduce_state_;  ///< what the last all-reduce ran on, until the end of the backward pass
  std::vector<std::size_t> post_forward_indices_;
};

}  // namespace qlp
