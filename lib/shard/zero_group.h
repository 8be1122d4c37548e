// One group of an optimizer under ZeRO-1 and 2: its parameters in one flat buffer, and the part of it, in float32, that
// this rank updates (deepspeed/runtime/zero/stage_1_and_2.py, __init__, 0.18.3).
#pragma once

#include <vector>

#include "nn/parameter.h"
#include "shard/zero_layout.h"
#include "shard/zero_options.h"

namespace qlp {

class ZeroGroup {
 public:
  /// Moves the parameters into the flat buffer, of which they are views from then on.
  ZeroGroup(Context& ctx, std::vector<Parameter*> parameters, const ZeroOptions& options);

  /// Of parameters that need not be there yet.
  static ZeroLayout layout_of(const std::vector<Parameter*>& parameters, const ZeroOptions& options);

  /// In the order of the optimizer's group.
  const std::vector<Parameter*>& parameters() const { return parameters_; }
  const Tensor& tensor(std::size_t index) const { return parameters_[index]->tensor; }
  const ZeroLayout& layout() const { return layout_; }
  /// The slices of a parameter, and whether this rank has one of them.
  std::vector<ZeroLayout::Slice> slices(std::size_t index) const { return layout_.slices(place_[index]); }
  bool has(std::int64_t rank, std::size_t index) const { return layout_.has(rank, place_[index]); }
  std::int64_t start_in(std::int64_t rank, std::size_t index) const { return layout_.start_in(rank, place_[index]); }
  /// The parameters of which this rank has a part, in the order of the flat buffer (params_in_partition).
  const std::vector<std::size_t>& members() const { return members_; }

  const Tensor& flat() const { return flat_; }
  const Tensor& master() const { return master_; }  ///< single_partition_of_fp32_groups
  /// The part of the flat buffer that a rank updates.
  Tensor partition(std::int64_t rank) const;

  /// Of this rank's parameters: added up over micro steps (all_grad_tensors), and what the step uses
  /// (averaged_gradients).
  std::vector<Tensor> accumulated, averaged;
  /// With offload: of the partition, kept on the host, and the norms of its parts in this step (norm_for_param_grads).
  Tensor host_gradient;
  std::vector<Tensor> norms;

 private:
  void flatten(Context& ctx);
  void join(Context& ctx, const Tensor& joined, const std::vector<Tensor>& tensors) const;
  void make_master(Context& ctx, const ZeroOptions& options);

  std::vector<Parameter*> parameters_;
  std::vector<std::size_t> order_;  ///< parameters by their place in the flat buffer
  std::vector<std::size_t> place_;  ///< the other way round
  ZeroLayout layout_;
  std::vector<std::size_t> members_;
  Tensor flat_, master_;
  Tensor host_copy_;  ///< with offload: of the partition, in the dtype of the flat buffer
};

/// With offload: zeros on the host, page-locked where the options say so.
Tensor offloaded(Context& ctx, std::int64_t numel, DType dtype, const ZeroOptions& options);

}  // namespace qlp
