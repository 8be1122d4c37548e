#include "shard/fsdp1_handle.h"

#include <algorithm>
#include <utility>

#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "base/rounding.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

constexpr std::int64_t kUnitAlignment = 16;  // bytes; _flat_param.py, _get_aligned_numel

Category category_of(const std::vector<Parameter*>& parameters) {
  return parameters.front()->tensor.storage().label().category;
}

/// A tensor whose memory is taken away at once, to be taken again when it is needed (_free_storage).
Tensor without_memory(Context& ctx, std::int64_t numel, DType dtype, Op op) {
  const Scoped category(ctx.category, Category::gathered_weights);
  Tensor tensor = empty(ctx, {numel}, dtype, op);
  tensor.storage().resize(0, ctx.stream);
  return tensor;
}

void allocate(Context& ctx, const Tensor& tensor) {
  tensor.storage().resize(bytes_of(tensor.shape(), tensor.dtype()).count(), ctx.stream);
}

/// Other work of this stream may still read it.
void release(Context& ctx, const Tensor& tensor) {
  tensor.storage().record_stream(ctx.stream);
  tensor.storage().resize(0, ctx.stream);
}

}  // namespace

Tensor padded_to(Context& ctx, const Tensor& flat, std::int64_t numel) {
  Tensor padded = empty(ctx, {numel}, flat.dtype(), Op::pad);
  if (ctx.kernels(padded)) {
    fill(ctx, padded, 0);
    copy_into(ctx, padded.flat(0, flat.numel()), flat);
  }
  return padded;
}

FlatParamHandle::FlatParamHandle(Context& ctx, const std::vector<Parameter*>& parameters, const Fsdp1Options& options)
    : options_(&options), original_dtype_(parameters.front()->tensor.dtype()) {
  const Scoped category(ctx.category, category_of(parameters));
  std::vector<Tensor> originals;
  bool requires_grad = false;
  for (Parameter* parameter : parameters) {
    Piece piece{.parameter = parameter, .shape = parameter->tensor.shape(), .numel = parameter->tensor.numel()};
    if (options.use_orig_params) piece.original = parameter->tensor;
    originals.push_back(parameter->tensor);
    requires_grad = requires_grad || parameter->tensor.requires_grad();
    pieces_.push_back(std::move(piece));
  }
  flatten(ctx);
  if (ctx.kernels(flat_)) {
    fill(ctx, flat_, 0);
    std::size_t next = 0;
    for (const Piece& piece : pieces_)
      if (piece.parameter) copy_elements(ctx, flat_.flat(piece.offset, piece.numel), originals[next++]);
  }
  set_requires_grad(flat_, requires_grad);
  use_unsharded_views(ctx, false);
  shard(ctx);
  if (options.offloads) offload(ctx);
}

/// _init_flat_param_and_metadata
void FlatParamHandle::flatten(Context& ctx) {
  std::vector<Piece> parameters = std::exchange(pieces_, {});
  std::vector<Tensor> padding;
  const std::int64_t aligned =
      options_->use_orig_params ? kUnitAlignment / static_cast<std::int64_t>(size_of(compute_dtype())) : 1;
  for (Piece& piece : parameters) {
    if (numel_ % aligned) pad(ctx, aligned - numel_ % aligned, padding);
    piece.offset = numel_;
    numel_ += piece.numel;
    pieces_.push_back(std::move(piece));
  }
  if (options_->use_orig_params && numel_ % options_->world_size)
    pad(ctx, options_->world_size - numel_ % options_->world_size, padding);
  flat_ = empty(ctx, {numel_}, original_dtype_, Op::flat_parameter);
}

/// torch.ones(numel) * value
void FlatParamHandle::pad(Context& ctx, std::int64_t numel, std::vector<Tensor>& kept) {
  const Tensor ones = empty(ctx, {numel}, original_dtype_, Op::zeros);
  kept.push_back(empty_like(ctx, ones, Op::mul));
  pieces_.push_back({.numel = numel, .offset = numel_});
  numel_ += numel;
}

void FlatParamHandle::shard(Context& ctx) {
  const std::int64_t ranks = shards() ? options_->world_size : 1, rank = shards() ? options_->rank : 0;
  shard_numel_ = ceil_div(numel_, ranks);
  const std::int64_t first = shard_numel_ * rank;
  for (Piece& piece : pieces_) {
    const std::int64_t start = std::max(piece.offset, first);
    const std::int64_t end = std::min(piece.offset + piece.numel, first + shard_numel_);
    piece.shard_numel = std::max<std::int64_t>(0, end - start), piece.shard_offset = start - first;
  }
  if (shards()) {
    const std::int64_t own = std::clamp<std::int64_t>(numel_ - first, 0, shard_numel_);
    Tensor data = empty(ctx, {own}, original_dtype_, Op::flat_parameter);
    if (own > 0) copy_into(ctx, data, flat_.flat(first, own));
    if (own < shard_numel_) data = padded_to(ctx, data, shard_numel_);
    flat_.storage().resize(0, ctx.stream);
    set_data(flat_, data);
  }
  local_shard_ = flat_.alias();
  if (options_->use_orig_params) use_sharded_views(ctx);
}

/// _init_param_handle_from_params: handle.flat_param_to(cpu)
void FlatParamHandle::offload(Context& ctx) {
  set_data(flat_, to_host(ctx, flat_));
  local_shard_ = flat_.alias();
  if (options_->use_orig_params) use_sharded_views(ctx);
}

void FlatParamHandle::upcast(Context& ctx) {
  const Scoped category(ctx.category, flat_.storage().label().category);
  const Scoped no_grad(ctx.grad_enabled, false);
  set_data(flat_, to(ctx, flat_, DType::float32));
  original_dtype_ = DType::float32;
  local_shard_ = flat_.alias();
}

void FlatParamHandle::init_attributes(Context& ctx) {
  if (options_->offloads) {
    local_shard_ = pin_memory(ctx, local_shard_);
    const Scoped category(ctx.category, Category::gradients);
    const Tensor zeros = empty_like(ctx, local_shard_, Op::zeros);  // of frozen parameters too
    fill(ctx, zeros, 0);
    host_grad_ = pin_memory(ctx, zeros);
  }
  if (mixed_precision())
    low_precision_shard_ = without_memory(ctx, shard_numel_, compute_dtype(), Op::mixed_precision_shard);
  if (!shards()) return;
  const std::int64_t padded = shard_numel_ * options_->world_size;
  full_ = without_memory(ctx, padded, compute_dtype(), Op::unsharded_parameter);
  if (mixed_precision()) full_precision_ = without_memory(ctx, padded, original_dtype_, Op::unsharded_parameter);
}

void FlatParamHandle::pre_unshard(Context& ctx) {
  if (shards() && !options_->offloads && !needs_unshard()) return;
  if (mixed_precision())
    use_low_precision_shard(ctx);
  else if (flat_.on_host())
    move_to_device(ctx);
}

/// _use_low_precision_shard: from the host in full precision, cast on the device.
void FlatParamHandle::use_low_precision_shard(Context& ctx) {
  allocate(ctx, low_precision_shard_);
  copy_into(ctx, low_precision_shard_, to_device(ctx, local_shard_));
  set_data(flat_, low_precision_shard_);
}

/// flat_param_to(device)
void FlatParamHandle::move_to_device(Context& ctx) {
  set_data(flat_, to_device(ctx, flat_));
  if (options_->use_orig_params) use_sharded_views(ctx);
}

void FlatParamHandle::unshard(Context& ctx) {
  if (needs_unshard()) {
    const Tensor own = flat_.alias();
    allocate(ctx, full_);
    all_gather(ctx, options_->group(), full_, own);
    if (options_->records_collectives)
      full_.storage().record_stream(fsdp1_stream::kCollectives),
          own.storage().record_stream(fsdp1_stream::kCollectives);
    if (options_->offloads) own.storage().record_stream(ctx.stream);
  }
  if (shards()) set_data(flat_, full_.flat(0, numel_));
  if (!options_->use_orig_params) {
    if (state == State::forward) use_unsharded_views(ctx, false);
  } else if (!keeps_whole_views_ || state != State::backward_pre) {
    use_unsharded_views(ctx, state != State::forward && state != State::backward_pre);
  }
}

void FlatParamHandle::post_unshard(Context& ctx) {
  if (mixed_precision() && shards()) free_low_precision_shard(ctx);
}

void FlatParamHandle::free_low_precision_shard(Context& ctx) { release(ctx, low_precision_shard_); }

void FlatParamHandle::reshard(Context& ctx, bool frees) {
  set_data(flat_, local_shard_);
  if (options_->use_orig_params) {
    if (state == State::forward && ctx.grad_enabled && shards() && !options_->reshards_after_forward)
      keeps_whole_views_ = true;
    else
      use_sharded_views(ctx);
    if (state == State::forward && !keeps_whole_views_) {
      const Tensor& grad = grad_of(flat_);
      const bool kept_whole = grad.defined() && shards() && grad.numel() == numel_;
      if (kept_whole)
        use_unsharded_grad_views(ctx);
      else
        use_sharded_grad_views(ctx);
    }
  }
  if (frees) release(ctx, full_);
}

void FlatParamHandle::post_reshard(Context& ctx) {
  if (mixed_precision() && !shards()) free_low_precision_shard(ctx);
}

bool FlatParamHandle::resharded() const {
  return !keeps_whole_views_ && flat_.impl()->storage == local_shard_.impl()->storage;
}

std::vector<Tensor> FlatParamHandle::unflat_views(Context& ctx) const {
  std::vector<std::int64_t> lengths;
  for (const Piece& piece : pieces_) lengths.push_back(piece.numel);
  const std::vector<Tensor> parts = split(ctx, flat_, lengths, 0);
  std::vector<Tensor> views;
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    views.push_back(pieces_[i].parameter ? reshape(ctx, parts[i], pieces_[i].shape) : Tensor());
  return views;
}

void FlatParamHandle::use_unsharded_views(Context& ctx, bool as_parameters) {
  const Scoped grad_mode(ctx.grad_enabled, true);
  const std::vector<Tensor> views = unflat_views(ctx);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    if (!piece.parameter) continue;
    if (options_->use_orig_params && as_parameters) {
      set_data(piece.original, views[i]);
      piece.parameter->tensor = piece.original;
    } else if (options_->use_orig_params && state == State::backward_pre) {
      set_data(piece.view, views[i]);
      piece.parameter->tensor = piece.view;
    } else {
      if (options_->use_orig_params && state == State::forward) piece.view = views[i];
      piece.parameter->tensor = views[i];
    }
  }
}

void FlatParamHandle::use_sharded_views(Context& ctx) {
  keeps_whole_views_ = false;
  if (!shards()) return use_unsharded_views(ctx, true);
  const Scoped place(ctx.place, flat_.storage().place());
  const Tensor nothing = empty(ctx, {0}, flat_.dtype(), Op::empty);
  for (Piece& piece : pieces_) {
    if (!piece.parameter) continue;
    set_data(piece.original, piece.shard_numel ? flat_.flat(piece.shard_offset, piece.shard_numel) : nothing);
    piece.parameter->tensor = piece.original;
    if (state == State::backward_post) piece.view.reset();
  }
}

void FlatParamHandle::prepare_gradient_for_backward() {
  const Tensor& grad = grad_of(flat_);
  if (!grad.defined() || (grad.numel() == numel_ && grad.on_host() == flat_.on_host())) return;
  if (grad.numel() == shard_numel_ && !grad.on_host()) saved_grad_ = grad.alias();
  set_grad(flat_, Tensor());
}

void FlatParamHandle::prepare_gradient_for_optim() {
  if (options_->offloads)
    set_grad(flat_, host_grad_);
  else if (saved_grad_ && post_backward_called)
    set_grad(flat_, *saved_grad_);
  saved_grad_.reset();
}

void FlatParamHandle::accumulate(Context& ctx, Tensor sharded) {
  if (saved_grad_)
    compute(ctx, Binary::add, *saved_grad_, *saved_grad_, sharded);
  else
    saved_grad_ = std::move(sharded);
  offload_gradient(ctx, *saved_grad_);
}

/// _offload_grad: without waiting, but for NO_SHARD.
void FlatParamHandle::offload_gradient(Context& ctx, const Tensor& gradient) {
  if (!options_->offloads) return;
  copy_to_host(ctx, gradient.storage().bytes());
  copy_into(ctx, host_grad_, gradient);
  if (!shards()) ctx.device.synchronize();
  gradient.storage().record_stream(fsdp1_stream::kPostBackward);
}

void FlatParamHandle::use_unsharded_grad_views(Context& ctx) {
  const Tensor grad = grad_of(flat_);
  for (const Piece& piece : pieces_) {
    if (!piece.parameter) continue;
    if (!grad.defined()) {
      set_grad(piece.original, Tensor());
      continue;
    }
    const Tensor view = grad.flat(piece.offset, piece.numel).view(piece.shape);
    const Tensor& parameter = piece.parameter->tensor;
    const bool fits = parameter.shape() == view.shape() && parameter.dtype() == view.dtype();
    // A gradient of the parameter's own size, to be pointed at the view.
    if (!fits && !grad_of(parameter).defined()) empty_like(ctx, parameter, Op::empty_like);
    set_grad(parameter, view);
  }
}

void FlatParamHandle::use_sharded_grad_views(Context& ctx) {
  const Tensor grad = options_->offloads ? host_grad_ : saved_grad_ ? *saved_grad_ : grad_of(flat_);
  for (const Piece& piece : pieces_) {
    if (!piece.parameter) continue;
    if (!grad.defined() || !piece.shard_numel || !piece.original.requires_grad()) {
      set_grad(piece.original, Tensor());
      continue;
    }
    if (piece.original.dtype() != grad.dtype() && !grad_of(piece.original).defined())
      empty_like(ctx, piece.original, Op::empty_like);
    const Tensor view = grad.flat(piece.shard_offset, piece.shard_numel);
    set_grad(piece.original, shards() ? view : view.view(piece.shape));
  }
}

void FlatParamHandle::reset_gradient_if_unused() {
  if (!options_->use_orig_params) return;
  bool unused = true, requires_grad = false;
  for (const Piece& piece : pieces_) {
    if (!piece.parameter) continue;
    unused = unused && !grad_of(piece.original).defined();
    requires_grad = requires_grad || piece.original.requires_grad();
  }
  if (unused) set_grad(flat_, Tensor());
  set_requires_grad(flat_, requires_grad);
}

std::vector<std::pair<const Parameter*, Tensor>> FlatParamHandle::named_parameters() const {
  std::vector<std::pair<const Parameter*, Tensor>> named;
  for (const Piece& piece : pieces_)
    if (piece.parameter && (options_->use_orig_params || named.empty()))
      named.emplace_back(piece.parameter, options_->use_orig_params ? piece.original : flat_);
  return named;
}

std::vector<Tensor> FlatParamHandle::parameters() const {
  std::vector<Tensor> tensors;
  for (auto& [parameter, tensor] : named_parameters()) tensors.push_back(tensor);
  return tensors;
}

}  // namespace qlp
