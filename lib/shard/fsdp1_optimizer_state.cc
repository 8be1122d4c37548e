// FSDP.optim_state_dict: the optimizer's state of one unit, gathered and parted by parameters
// (torch/distributed/fsdp/_optim_utils.py, 2.8 to 2.14).
#include "shard/fsdp1_handle.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {

void FlatParamHandle::gather_optimizer_state(Context& ctx, const Fsdp1OptimizerStates& states,
                                             const TrainingStateRequest& request, std::vector<Tensor>& out) const {
  const Scoped category(ctx.category, Category::workspace);
  if (uses_orig_params())
    gather_by_name(ctx, states, request, out);
  else if (const OptimizerEntry* entry = states.find(flat_))
    gather_flat_states(ctx, *entry, request, out);
}

/// The part of this rank of one state, all parameters behind each other; what has no state is padding, which is held
/// until the parts are joined.
Tensor FlatParamHandle::joined_state(Context& ctx, const std::vector<Tensor>& by_piece, DType dtype) const {
  std::vector<Tensor> padding;
  const auto pad = [&](std::int64_t numel) {
    if (numel > 0) padding.push_back(empty(ctx, {numel}, dtype, Op::empty));
  };
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!by_piece[i].defined()) pad(pieces_[i].shard_numel);
    filled += pieces_[i].shard_numel;
  }
  pad(shard_numel_ - filled);
  Tensor joined = empty(ctx, {shard_numel_}, dtype, Op::cat);
  if (!ctx.kernels(joined)) return joined;
  fill(ctx, joined, 0);
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (by_piece[i].defined())
      copy_elements(ctx, joined.flat(pieces_[i].shard_offset, pieces_[i].shard_numel), by_piece[i]);
  return joined;
}

/// _allgather_orig_param_states: every rank of the unit takes part, also where it has none of what is trained. One
/// buffer for all states in turn. The part that was gathered before is there until the next one is. What is offloaded
/// comes to the GPU first, all of it (_convert_all_state_info).
void FlatParamHandle::gather_by_name(Context& ctx, const Fsdp1OptimizerStates& states,
                                     const TrainingStateRequest& request, std::vector<Tensor>& out) const {
  const auto [names, dtype] = states.optimizer->states_alike(flat_.dtype());
  if (names == 0) return;
  std::vector<std::vector<Tensor>> by_name(names, std::vector<Tensor>(pieces_.size()));
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (const OptimizerEntry* entry = states.find(pieces_[i].original))
      for (std::size_t name = 0; name < names; ++name) by_name[name][i] = to_device(ctx, entry->state.at(name));
  const Tensor gathered = empty(ctx, {shard_numel_ * options_->world_size}, dtype, Op::all_gather);
  Tensor joined;
  for (const std::vector<Tensor>& by_piece : by_name) {
    joined = joined_state(ctx, by_piece, dtype);
    all_gather(ctx, options_->group(), gathered, joined);
    if (!request.sharded && !request.first) continue;
    for (const Piece& piece : pieces_) {
      if (!piece.parameter || !piece.parameter->trainable) continue;
      const Tensor whole = gathered.flat(piece.offset, piece.numel).view(piece.shape);
      out.push_back(request.sharded ? taken_chunk(ctx, chunk(ctx, whole)) : to_host(ctx, whole));
    }
  }
}

/// _communicate_optim_state: every state of the flat parameter in a buffer of its own, on every rank. Chunks are all
/// there before the first of them goes to the host (_unflatten_communicated_optim_state).
void FlatParamHandle::gather_flat_states(Context& ctx, const OptimizerEntry& entry, const TrainingStateRequest& request,
                                         std::vector<Tensor>& out) const {
  std::vector<Tensor> buffers, parts;
  for (const Tensor& kept : entry.state) {
    buffers.push_back(empty(ctx, {shard_numel_ * options_->world_size}, kept.dtype(), Op::zeros));
    all_gather(ctx, options_->group(), buffers.back(), to_device(ctx, kept));
  }
  if (!request.sharded && !request.first) return;
  for (const Piece& piece : pieces_)
    for (const Tensor& buffer : buffers) {
      if (!piece.parameter) continue;
      const Tensor whole = buffer.flat(piece.offset, piece.numel).view(piece.shape);
      parts.push_back(request.sharded ? chunk(ctx, whole) : whole);
    }
  for (Tensor& part : parts) {
    out.push_back(request.sharded ? taken_chunk(ctx, part) : to_host(ctx, part));
    part.reset();
  }
}

}  // namespace qlp
