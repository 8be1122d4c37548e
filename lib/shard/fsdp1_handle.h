// The flat parameter of one FSDP1 unit: its shard, its gathered copy, and the parameters as views of either
// (FlatParamHandle in torch/distributed/fsdp/_flat_param.py, torch 2.4 to 2.14). Every memory event of that class, on
// the stream that is current in the context.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "autograd/node.h"
#include "nn/parameter.h"
#include "optim/optimizer.h"
#include "shard/fsdp1_options.h"
#include "shard/state_dict.h"

namespace qlp {

/// F.pad(flat, [0, numel - flat.numel()])
Tensor padded_to(Context& ctx, const Tensor& flat, std::int64_t numel);

/// What an optimizer keeps of the tensors that it was given, on this rank: what has their shape.
struct Fsdp1OptimizerStates {
  const Optimizer* optimizer = nullptr;
  std::unordered_map<const TensorImpl*, OptimizerEntry> of;

  const OptimizerEntry* find(const Tensor& parameter) const {
    const auto found = parameter.defined() ? of.find(parameter.impl()) : of.end();
    return found == of.end() ? nullptr : &found->second;
  }
};

class FlatParamHandle {
 public:
  enum class State : std::uint8_t { idle, forward, backward_pre, backward_post };

  /// Flattens and shards: afterwards the parameters hold this rank's part, or views of memory that is gone.
  FlatParamHandle(Context& ctx, const std::vector<Parameter*>& parameters, const Fsdp1Options& options);
  FlatParamHandle(const FlatParamHandle&) = delete;
  FlatParamHandle& operator=(const FlatParamHandle&) = delete;

  /// accelerate: flat_param.data = flat_param.data.to(float32).
  void upcast(Context& ctx);
  void init_attributes(Context& ctx);

  void pre_unshard(Context& ctx);
  void unshard(Context& ctx);
  void post_unshard(Context& ctx);
  void reshard(Context& ctx, bool frees);
  void post_reshard(Context& ctx);
  bool resharded() const;

  /// Sets this rank's gradient aside, so that that of the whole parameter can be computed.
  void prepare_gradient_for_backward();
  /// Hands this rank's gradient to the optimizer.
  void prepare_gradient_for_optim();
  /// Takes the sum over ranks in `sharded` as, or adds it to, this rank's gradient.
  void accumulate(Context& ctx, Tensor sharded);
  void use_unsharded_grad_views(Context& ctx);
  void use_sharded_grad_views(Context& ctx);
  /// With original parameters: drops the flat gradient when none of theirs is left.
  void reset_gradient_if_unused();

  /// Takes a gradient that is ready on the device over into the one on the host.
  void offload_gradient(Context& ctx, const Tensor& gradient);
  /// Where the whole parameter is between summon() and dismiss(): on ranks that only take part it is nowhere.
  enum class Summoned : std::uint8_t { nowhere, on_host, on_device };
  /// Gathers the flat parameter in its own dtype, outside of the step (_unshard_fsdp_state_params: with offload_to_cpu
  /// and rank0_only for a FULL_STATE_DICT, else it stays on the device).
  void summon(Context& ctx, Summoned where);
  /// What was taken to the host comes back for a moment (to_cpu), then the shard is in its place.
  void dismiss(Context& ctx);
  /// Copies of the parameters, of what is on the host; two of the one that has two names.
  void clone_parameters(Context& ctx, const Parameter* named_twice, std::vector<StateDictEntry>& out) const;
  /// The same of this rank's chunks of what is on the device, cut along their first dimension: ShardedTensors.
  void chunk_parameters(Context& ctx, const Parameter* named_twice, std::vector<StateDictEntry>& out) const;
  /// What the optimizer keeps of these parameters, gathered; what this rank writes of it goes to `out`, on the host.
  void gather_optimizer_state(Context& ctx, const Fsdp1OptimizerStates& states, const TrainingStateRequest& request,
                              std::vector<Tensor>& out) const;

  /// The tensors that an optimizer may be given: the original parameters, or the flat one.
  std::vector<Tensor> parameters() const;
  /// The tensors of parameters(), under the parameters that they stand for (the first of a flat one).
  std::vector<std::pair<const Parameter*, Tensor>> named_parameters() const;

  const Tensor& flat() const { return flat_; }
  bool trained() const { return flat_.requires_grad(); }
  bool shards() const { return options_->shards; }
  bool reshards_after_forward() const { return shards() && options_->reshards_after_forward; }
  bool uses_orig_params() const { return options_->use_orig_params; }
  DType reduce_dtype() const { return options_->mixed_precision.reduce_dtype.value_or(compute_dtype()); }
  std::int64_t shard_numel() const { return shard_numel_; }

  // What the runtime keeps on the handle.
  State state = State::idle;
  bool prefetched = false;
  bool needs_pre_forward_unshard = false;
  bool ran_pre_backward_hook = false;
  bool needs_pre_backward_unshard = false;
  bool post_backward_called = false;
  std::optional<std::size_t> pre_forward_index, post_forward_index;

 private:
  /// A stretch of the flat parameter: a parameter, or padding.
  struct Piece {
    Parameter* parameter = nullptr;
    Shape shape;
    std::int64_t numel = 0, offset = 0;
    std::int64_t shard_offset = 0, shard_numel = 0;  ///< the part in this rank's shard
    Tensor original;                                 ///< use_orig_params: the parameter itself
    Tensor view;                                     ///< use_orig_params: of the last forward pass
  };

  void flatten(Context& ctx);
  void pad(Context& ctx, std::int64_t numel, std::vector<Tensor>& kept);
  void shard(Context& ctx);
  bool mixed_precision() const { return compute_dtype() != original_dtype_; }
  DType compute_dtype() const { return options_->mixed_precision.param_dtype.value_or(original_dtype_); }
  /// The gathered parameter in its own dtype.
  const Tensor& full_precision() const { return mixed_precision() ? full_precision_ : full_; }
  bool needs_unshard() const { return shards() && full_.storage().bytes() == 0; }
  void offload(Context& ctx);
  void move_to_device(Context& ctx);
  void use_low_precision_shard(Context& ctx);
  void use_unsharded_views(Context& ctx, bool as_parameters);
  void use_sharded_views(Context& ctx);
  void free_low_precision_shard(Context& ctx);
  std::vector<Tensor> unflat_views(Context& ctx) const;
  /// Of a whole parameter a copy of this rank's chunk, which may be empty.
  Tensor chunk(Context& ctx, const Tensor& whole) const;
  Tensor taken_chunk(Context& ctx, const Tensor& chunk) const;
  Tensor joined_state(Context& ctx, const std::vector<Tensor>& by_piece, DType dtype) const;
  void gather_by_name(Context& ctx, const Fsdp1OptimizerStates& states, const TrainingStateRequest& request,
                      std::vector<Tensor>& out) const;
  void gather_flat_states(Context& ctx, const OptimizerEntry& entry, const TrainingStateRequest& request,
                          std::vector<Tensor>& out) const;

  const Fsdp1Options* options_;
  std::vector<Piece> pieces_;
  DType original_dtype_;
  std::int64_t numel_ = 0;  ///< with the padding for alignment
  std::int64_t shard_numel_ = 0;
  Tensor flat_;         ///< the FlatParameter; its memory changes
  Tensor local_shard_;  ///< what this rank keeps
  Tensor low_precision_shard_;
  Tensor full_;            ///< gathered; without memory most of the time
  Tensor full_precision_;  ///< under mixed precision: gathered as it is saved
  Summoned summoned_ = Summoned::nowhere;
  Tensor on_host_;  ///< what is summoned there
  bool drops_summoned_ = true;
  std::optional<Tensor> saved_grad_;
  Tensor host_grad_;  ///< offloaded: of the shard, kept from the first pass on
  /// SHARD_GRAD_OP: modules go on holding whole parameters between the forward and the backward pass.
  bool keeps_whole_views_ = false;
};

}  // namespace qlp
