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
  /// `groups` are the optimizer's sub groups.
  Zero3Gradients(Context& ctx, const std::vector<std::vector<Zero3Param*>>& groups, const Zero3Options& options);
  Zero3Gradients(const Zero3Gradients&) = delete;
  Zero3Gradients& operator=(const Zero3Gradients&) = delete;

  /// The micro step that comes is the last one before the optimizer's.
  void set_boundary(bool boundary) { boundary_ = boundary; }
  /// After the backward pass of a micro step.
  void finish_backward(Context& ctx);
  /// This rank's part of the gradients of a sub group, as views.
  const std::vector<Tensor>& parts(std::size_t group) const { return parts_[group]; }
  /// The optimizer has made its step (reset_cpu_buffers).
  void drop_norms() { norms_.clear(), fresh_.clear(); }

 private:
  void add_hook(Context& ctx, Zero3Param& param);
  void ready(Context& ctx, Zero3Param& param);
  void reduce(Context& ctx);
  Tensor reduce_scatter(Context& ctx);
  void keep_part(Context& ctx, const Zero3Param& param, const Tensor& part);
  void offload_part(Context& ctx, const Zero3Param& param, Tensor& on_device);

  Zero3Options options_;
  bool boundary_ = true;
  Tensor bucket_;
  Tensor flat_;  ///< parts of all gradients
  std::vector<std::vector<Tensor>> parts_;
  std::vector<Zero3Param*> in_bucket_;
  std::int64_t bucket_numel_ = 0;
  std::vector<Tensor> norms_;  ///< of gradients that live on the host
  std::map<const Zero3Param*, Tensor> part_of_;
  std::set<const Zero3Param*> fresh_;  ///< whose parts hold gradients of this step
};

}  // namespace qlp
