// Gradients under ZeRO stage 3: gathered in a bucket as they come, reduced to this rank's parts, kept there until the
// optimizer's step (deepspeed/runtime/zero/stage3.py, 0.18.3).
#pragma once

#include <map>
#include <set>
#include <vector>

#include "autograd/node.h"
#include "shard/zero3_param.h"

namespace qlp {

class Zero3Gradients {
 public:
  /// Takes the bucket and the parts of all gradients, and hangs hooks on the parameters, which refer to this object.
  /// `groups` are the optimizer's sub groups; with offload `masters` are the gradients of their master weights.
  Zero3Gradients(Context& ctx, const std::vector<std::vector<Zero3Param*>>& groups, const std::vector<Tensor>& masters,
                 const Zero3Options& options);
  Zero3Gradients(const Zero3Gradients&) = delete;
  Zero3Gradients& operator=(const Zero3Gradients&) = delete;

  /// The micro step that comes is the last one before the optimizer's.
  void set_boundary(bool boundary) { boundary_ = boundary; }
  /// The backward pass has left a leaf: only now its gradients go into the bucket, all of them
  /// (reduce_leaf_module_grads).
  void leave(Context& ctx, const Module& leaf);
  /// After the backward pass of a micro step.
  void finish_backward(Context& ctx);
  /// This rank's part of the gradients of a sub group, as views.
  const std::vector<Tensor>& parts(std::size_t group) const { return parts_[group]; }
  /// With offload: the norms of a sub group's gradients (norm_for_param_grads).
  const std::vector<Tensor>& norms(std::size_t group) const { return norms_[group]; }
  /// `tracker` [1] boolean becomes true if one of this rank's parts of gradients is not finite.
  void track_non_finite(Context& ctx, const Tensor& tracker) const;
  /// The optimizer has made its step (reset_cpu_buffers).
  void drop_norms() {
    for (auto& norms : norms_) norms.clear();
    fresh_.clear();
  }

 private:
  void add_hook(Context& ctx, Zero3Param& param);
  void ready(Context& ctx, Zero3Param& param);
  void reduce(Context& ctx);
  std::vector<Tensor> reduce_scatter(Context& ctx) const;
  std::vector<Tensor> all_reduce_bucket(Context& ctx) const;
  std::vector<Tensor> scatter_joined(Context& ctx, const std::vector<Tensor>& whole) const;
  void keep_part(Context& ctx, const Zero3Param& param, const Tensor& part);
  void offload_part(Context& ctx, const Zero3Param& param, Tensor& on_device);
  void add_arrived(Context& ctx, const Zero3Param& param, const Tensor& on_device);

  /// What is kept of a gradient on this rank.
  struct Kept {
    Tensor part;
    Tensor master;  ///< with offload: its place in the gradient of the master weight
    std::size_t group;
    Tensor arrived;  ///< with offload: what was reduced, until it is added to the part
  };

  Zero3Options options_;
  DType parameter_dtype_;  ///< of the first one that is trained
  bool boundary_ = true;
  Tensor bucket_;
  Tensor flat_;  ///< parts of all gradients
  std::vector<std::vector<Tensor>> parts_;
  std::vector<Zero3Param*> in_bucket_;
  std::int64_t bucket_numel_ = 0;
  std::vector<std::vector<Tensor>> norms_;  ///< of gradients that live on the host, by sub group
  std::map<const Zero3Param*, Kept> kept_;
  std::map<const Module*, std::vector<Zero3Param*>> of_leaf_;
  std::set<const Zero3Param*> fresh_;  ///< whose parts hold gradients of this step
};

}  // namespace qlp
