#include "shard/zero3_gather.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/rounding.h"
#include "tensor/collective.h"
#include "tensor/factories.h"

namespace qlp {

void Zero3Gather::start(Context& ctx, std::vector<Zero3Param*> params, const Zero3Options& options) {
  std::sort(params.begin(), params.end(), [](auto* a, auto* b) { return a->id() < b->id(); });
  const Ref<Zero3Gather> gather(new Zero3Gather(std::move(params)));
  for (Zero3Param* param : gather->params_) param->status = Zero3Status::inflight, param->inflight = gather;
  const Scoped category(ctx.category, Category::gathered_weights);
  if (options.world_size == 1 || gather->params_.size() == 1)
    gather->gather_one(ctx, options);
  else
    gather->gather_several(ctx, options);
}

/// AllGatherHandle: the parameter lies in the buffer. NoGatherHandle: one rank's part is the whole.
void Zero3Gather::gather_one(Context& ctx, const Zero3Options& options) {
  for (Zero3Param* param : params_) {
    const Tensor own = partition_on_device(ctx, *param);
    if (options.world_size == 1) {
      param->show(own);
      continue;
    }
    const Shape whole{round_up(param->numel(), options.world_size)};
    const Tensor buffer = empty(ctx, whole, own.dtype(), Op::all_gather);
    communicate(ctx, Collective::all_gather, options.group(), buffer);
    param->show(buffer);
    if (options.offload_param) inputs_.push_back(own);
  }
}

void Zero3Gather::gather_several(Context& ctx, const Zero3Options& options) {
  std::map<DType, std::vector<Zero3Param*>> by_dtype;
  for (Zero3Param* param : params_) by_dtype[param->dtype()].push_back(param);
  for (const auto& [dtype, params] : by_dtype) {
    std::int64_t part = 0;
    for (const Zero3Param* param : params) part += param->partition_numel();
    flat_.push_back(empty(ctx, {part * options.world_size}, dtype, Op::all_gather));
    std::vector<Tensor> parts;
    for (const Zero3Param* param : params) parts.push_back(partition_on_device(ctx, *param));
    communicate(ctx, Collective::all_gather, options.group(), flat_.back());
  }
}

void Zero3Gather::wait(Context& ctx) {
  if (complete_) return;
  complete_ = true;
  inputs_.clear();
  const Scoped category(ctx.category, Category::gathered_weights);
  for (Zero3Param* param : params_) {
    if (!flat_.empty()) param->show(empty(ctx, {param->numel()}, param->dtype(), Op::cat));
    param->status = Zero3Status::available;
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
    communicate(ctx, Collective::all_gather, options.group(), wholes.back());
  }
  if (options.world_size == 1) wholes = std::exchange(parts, {});
  for (std::size_t i = 0; i < params.size(); ++i)
    params[i]->show(wholes[i]), params[i]->status = Zero3Status::available;
  if (!parts.empty()) parts.pop_back();
  return parts;
}

}  // namespace qlp
