#include "shard/zero3_gather.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/rounding.h"
#include "tensor/collective.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// What of a parameter this rank gives, on the GPU: its part of the second copy where there is one, among fewer ranks.
Tensor source_of(Context& ctx, const Zero3Param& param) {
  return param.secondary().defined() ? param.secondary() : partition_on_device(ctx, param);
}

RankGroup group_of(const Zero3Param& param, const Zero3Options& options) {
  return param.secondary().defined() ? options.secondary_group() : options.group();
}

}  // namespace

void Zero3Gather::start(Context& ctx, std::vector<Zero3Param*> params, const Zero3Options& options) {
  std::sort(params.begin(), params.end(), [](auto* a, auto* b) { return a->id() < b->id(); });
  const Ref<Zero3Gather> gather(new Zero3Gather(std::move(params)));
  for (Zero3Param* param : gather->params_) param->status = Zero3Status::inflight, param->inflight = gather;
  const Scoped category(ctx.category, Category::gathered_weights);
  if (options.world_size == 1 || gather->params_.size() == 1)
    gather->gather_one(ctx, options);
  else if (options.fetches_by_all_reduce && !gather->params_.front()->secondary().defined())
    gather->sum_several(ctx, options);
  else
    gather->gather_several(ctx, options);
}

/// AllGatherHandle: the parameter lies in the buffer. NoGatherHandle: one rank's part is the whole.
void Zero3Gather::gather_one(Context& ctx, const Zero3Options& options) {
  for (Zero3Param* param : params_) {
    const Tensor own = source_of(ctx, *param);
    if (options.world_size == 1) {
      param->show(own);
      continue;
    }
    const RankGroup group = group_of(*param, options);
    const Tensor buffer = empty(ctx, {own.numel() * group.size}, own.dtype(), Op::all_gather);
    all_gather(ctx, group, buffer, own);
    param->show(buffer);
    if (options.offload_param) inputs_.push_back(own);
  }
}

void Zero3Gather::gather_several(Context& ctx, const Zero3Options& options) {
  const RankGroup group = group_of(*params_.front(), options);
  std::map<DType, std::vector<Zero3Param*>> by_dtype;
  for (Zero3Param* param : params_) by_dtype[param->dtype()].push_back(param);
  for (const auto& [dtype, params] : by_dtype) {
    const bool second = params.front()->secondary().defined();
    std::int64_t row = 0;
    for (const Zero3Param* param : params) row += second ? param->secondary().numel() : param->partition_numel();
    flat_.push_back(empty(ctx, {row * group.size}, dtype, Op::all_gather));
    std::vector<Tensor> parts;
    for (const Zero3Param* param : params) parts.push_back(source_of(ctx, *param));
    const Tensor own = flat_.back().flat(options.rank % group.size * row, row);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < params.size(); ++i) {
      const std::int64_t part = parts[i].numel();
      if (ctx.kernels(own)) {
        copy_into(ctx, own.flat(start, part), parts[i]);
        places_[params[i]] = {flat_.back(), row, start, part};
      }
      start += part;
    }
    all_gather(ctx, group, flat_.back(), own);
  }
}

/// use_all_reduce_for_fetch_params: every rank puts its parts where they belong in zeros, and the parameters lie in the
/// sum, one right behind the other.
void Zero3Gather::sum_several(Context& ctx, const Zero3Options& options) {
  std::int64_t total = 0;
  for (const Zero3Param* param : params_) total += param->partition_numel() * options.world_size;
  const Tensor sum = empty(ctx, {total}, params_.front()->dtype(), Op::zeros);
  fill(ctx, sum, 0);
  std::int64_t start = 0;
  for (Zero3Param* param : params_) {
    const std::int64_t part = param->partition_numel(), at = part * options.rank;
    const std::int64_t own = std::clamp<std::int64_t>(param->numel() - at, 0, part);
    if (own > 0) copy_into(ctx, sum.flat(start + at, own), param->partition().flat(0, own));
    if (param->partition().on_host()) copy_to_device(ctx, bytes_of(Shape{part}, param->dtype()).count());
    param->show(sum.flat(start, param->numel()));
    start += param->numel();
  }
  all_reduce(ctx, options.group(), sum, ReduceOp::sum);
}

void Zero3Gather::wait(Context& ctx) {
  if (complete_) return;
  complete_ = true;
  inputs_.clear();
  const Scoped category(ctx.category, Category::gathered_weights);
  for (Zero3Param* param : params_) {
    if (!flat_.empty()) {
      const Tensor whole = empty(ctx, {param->numel()}, param->dtype(), Op::cat);
      copy_out(ctx, *param, whole);
      param->show(whole);
    }
    param->status = Zero3Status::available;
  }
}

/// The ranks' parts, without the padding of the last.
void Zero3Gather::copy_out(Context& ctx, const Zero3Param& param, const Tensor& whole) const {
  const auto found = places_.find(&param);
  if (found == places_.end() || !ctx.kernels(whole)) return;
  const auto& [flat, row, start, part] = found->second;
  for (std::int64_t at = 0, rank = 0; at < param.numel(); at += part, ++rank) {
    const std::int64_t own = std::min(part, param.numel() - at);
    copy_into(ctx, whole.flat(at, own), flat.flat(rank * row + start, own));
  }
}

void wait_for(Context& ctx, Zero3Param& param) {
  if (const Ref<Zero3Gather> gather = std::exchange(param.inflight, {})) gather->wait(ctx);
}

std::vector<Tensor> gather_blocking(Context& ctx, const std::vector<Zero3Param*>& params, const Zero3Options& options) {
  const Scoped category(ctx.category, Category::gathered_weights);
  std::vector<Tensor> parts;
  for (const Zero3Param* param : params) parts.push_back(partition_on_device(ctx, *param));
  std::vector<Tensor> wholes;
  for (const Zero3Param* param : params) {
    if (options.world_size == 1) break;  // nothing to gather
    const Shape whole{param->partition_numel() * options.world_size};
    wholes.push_back(empty(ctx, whole, param->dtype(), Op::all_gather));
    all_gather(ctx, options.group(), wholes.back(), parts[wholes.size() - 1]);
  }
  if (options.world_size == 1) wholes = std::exchange(parts, {});
  for (std::size_t i = 0; i < params.size(); ++i)
    params[i]->show(wholes[i]), params[i]->status = Zero3Status::available;
  if (!parts.empty()) parts.pop_back();
  return parts;
}

}  // namespace qlp
