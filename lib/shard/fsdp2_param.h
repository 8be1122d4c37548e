// One parameter under FSDP2: its shard on this rank, and the whole of it while it is needed
// (torch/distributed/fsdp/_fully_shard/_fsdp_param.py).
#pragma once

#include <algorithm>
#include <optional>

#include "nn/parameter.h"
#include "shard/fsdp2_options.h"
#include "tensor/context.h"

namespace qlp {

class Fsdp2Param {
 public:
  /// Cuts `whole` along its first dimension. The parameter's tensor is from now on the shard, without padding.
  Fsdp2Param(Context& ctx, Parameter& parameter, const Tensor& whole, const Fsdp2Options& options);
  /// Of one that was cut as it was loaded: its tensor is the shard. reset_shard pads it.
  Fsdp2Param(Context& ctx, Parameter& parameter, const Fsdp2Options& options);

  Parameter& parameter() { return *parameter_; }
  bool trainable() const { return parameter_->trainable; }
  /// Another group shards the same parameter again; the modules that read it see that one.
  void disown() { shown_ = false; }

  /// The rows of this rank: of the DTensor that the optimizer gets.
  const Tensor& sharded() const { return sharded_; }
  const Shape& whole_shape() const { return shape_; }
  /// The first row of this rank, or that behind the last one.
  std::int64_t first_row() const { return std::min(shard_data_.size(0) * options_->rank, shape_[0]); }
  /// The same with the padding, which all ranks have alike.
  std::int64_t padded_numel() const { return shard_data_.numel(); }
  /// Makes the shard of `whole` on the device, where it was only planned so far (cut on the meta device).
  void load(Context& ctx, const Tensor& whole);
  /// Replaces the shard, as Module.to(dtype) does; the padded one stays until reset_shard.
  void cast_shard(Context& ctx, DType dtype);
  /// The padded shard follows the shard, where that was made without it.
  void reset_shard(Context& ctx);

  DType orig_dtype() const { return sharded_.dtype(); }
  /// The dtype in which it is gathered.
  DType gathered_dtype() const { return param_dtype().value_or(orig_dtype()); }
  /// Set if gathering casts.
  std::optional<DType> param_dtype() const;
  /// Set if gradients are reduced in another dtype than they are computed in.
  std::optional<DType> reduce_dtype() const;

  /// DTensor.full_tensor() of what is cut as this parameter is: this rank's part, padded where the last ones are
  /// shorter, gathered from all ranks.
  Tensor gathered(Context& ctx, const Tensor& part) const;
  /// What this rank has to give when parameters are gathered: the padded shard, or after a forward pass that has cut
  /// over fewer ranks its larger part.
  const Tensor& gather_source() const { return post_forward_.defined() ? post_forward_ : shard_data_; }
  /// That on the device, in the dtype in which it is gathered.
  Tensor gather_input(Context& ctx) const;
  bool offloaded() const { return options_->cpu_offload; }

  /// Takes memory for the whole parameter, padded.
  void allocate_unsharded(Context& ctx);
  void to_unsharded();
  /// Drops the memory of the whole parameter; tensors that autograd saved find it again after the next gathering.
  void to_sharded();
  /// The same, but keeps the part of one of `ranks` ranks.
  void to_sharded_post_forward(Context& ctx, std::int64_t ranks);
  const Tensor& unsharded() const { return unsharded_; }
  /// The whole with its padding, in rows of ranks.
  const Tensor& gathered() const { return gathered_; }

  /// After a backward pass without reduction: keeps the whole gradient of this rank in the reduce dtype, if that is
  /// another one; else it stays where autograd has put it.
  void accumulate_grad(Context& ctx);
  /// Adds the gradient of this backward pass in place to what was kept.
  void add_to_accumulated_grad(Context& ctx);
  /// The gradient to reduce, taken away; none if there is none.
  Tensor take_grad(Context& ctx);

 private:
  void cut_from(Context& ctx, const Tensor& whole, std::int64_t rows) const;
  Parameter* parameter_;
  const Fsdp2Options* options_;
  bool shown_ = true;
  Shape shape_;  ///< whole
  Tensor shard_data_, sharded_;
  Tensor post_forward_;  ///< from a forward pass that has cut over fewer ranks until the next gathering
  Tensor gathered_;      ///< padded; all_gather_outputs
  Tensor unsharded_;     ///< on the same storage, until a module replaces its data (biases of 4-bit layers)
  Tensor accumulated_grad_;
};

}  // namespace qlp
