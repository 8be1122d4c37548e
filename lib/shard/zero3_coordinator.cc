#include "shard/zero3_coordinator.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <set>

#include "tensor/factories.h"
#include "tensor/wait_stream.h"

namespace qlp {
namespace {

constexpr std::int64_t kMostOngoingFetches = 2;  // __max_ongoing_fetch_events

/// assert_ints_same_as_other_ranks: the length and the list of rank 0 are broadcast.
void compare_with_ranks(Context& ctx, std::size_t count) {
  const Scoped category(ctx.category, Category::communication_buffers);
  scratch(ctx, sizeof(std::int64_t), Op::broadcast);
  scratch(ctx, count * sizeof(std::int64_t), Op::broadcast);
}

bool contains(const std::vector<Zero3Param*>& params, const Zero3Param* param) {
  return std::find(params.begin(), params.end(), param) != params.end();
}

}  // namespace

Zero3Coordinator::Zero3Coordinator(Module& root, const std::vector<Zero3Param*>& params, const Zero3Options& options)
    : options_(options), all_(params) {
  for (Zero3Param* param : params)
    by_parameter_.emplace(&param->parameter(), param), by_tensor_.emplace(param->tensor().impl(), param);
  root.visit([&](Module& module) {
    std::vector<Zero3Param*>& own = of_module_[&module];
    for (const auto& parameter : module.own_parameters()) own.push_back(by_parameter_.at(parameter.get()));
    for (const Parameter* parameter : module.shared_parameters()) own.push_back(by_parameter_.at(parameter));
  });
  root.visit([&](Module& module) {
    if (!is_leaf_module(module)) return;
    std::vector<Zero3Param*>& own = of_module_[&module];
    for (const Parameter* parameter : module.parameters()) {
      Zero3Param* param = by_parameter_.at(parameter);
      param->leaf = &module;
      own.push_back(param);
    }
    if (below_.empty()) add_below(root);
  });
}

void Zero3Coordinator::add_below(Module& root) {
  root.visit([&](Module& module) {
    std::vector<Zero3Param*>& below = below_[&module];
    for (const Parameter* parameter : module.parameters()) below.push_back(by_parameter_.at(parameter));
  });
}

const std::vector<Zero3Param*>& Zero3Coordinator::params_of(const Module* module) const {
  static const std::vector<Zero3Param*> kNone;
  return module ? of_module_.at(module) : kNone;
}

const std::vector<Zero3Param*>& Zero3Coordinator::own_params_of(const Module* module) const {
  static const std::vector<Zero3Param*> kNone;
  return module && is_leaf_module(*module) ? kNone : params_of(module);
}

const std::vector<Zero3Param*>& Zero3Coordinator::params_below(const Module* module) const {
  const auto found = below_.find(module);
  return found == below_.end() ? params_of(module) : found->second;
}

std::int64_t Zero3Coordinator::last_fetched_for(const Zero3Param& param) const {
  const auto found = last_fetched_for_.find(&param);
  return found == last_fetched_for_.end() ? std::numeric_limits<std::int64_t>::min() : found->second;
}

void Zero3Coordinator::finish_inflight(Context& ctx) {
  for (Zero3Param* param : all_) {
    if (!param->inflight) continue;
    param->inflight->wait(ctx);
    release(ctx, *param);
  }
  for (Zero3Param* param : all_) param->inflight.reset();
}

void Zero3Coordinator::make_param_order() {
  for (std::size_t step = 0; step < module_order_.size(); ++step) {
    std::vector<Zero3Param*> params = params_of(module_order_[step]);
    std::sort(params.begin(), params.end(), [](auto* a, auto* b) { return a->id() < b->id(); });
    for (Zero3Param* param : params) param_order_.push_back({param, static_cast<std::int64_t>(step)});
  }
}

void Zero3Coordinator::reset_step(Context& ctx) {
  finish_inflight(ctx);
  if (trace_ == Trace::record) {
    compare_with_ranks(ctx, module_order_.size());
    make_param_order();
    compare_with_ranks(ctx, param_order_.size());
    compare_with_ranks(ctx, param_order_.size());
    trace_ = Trace::complete;
  } else if (trace_ == Trace::invalid) {
    trace_ = Trace::record;
  }
  queue_.assign(param_order_.begin(), param_order_.end());
  last_fetched_for_.clear();
  step_ = 0;
  available_ = 0;
}

void Zero3Coordinator::check_trace(Context& ctx, const Module* module) {
  if (trace_ != Trace::complete) return;
  const auto step = static_cast<std::size_t>(step_);
  if (step < module_order_.size() && module_order_[step] == module) return;
  trace_ = Trace::invalid;
  module_order_.clear(), param_order_.clear(), last_fetched_for_.clear(), queue_.clear();
  finish_inflight(ctx);
}

void Zero3Coordinator::gather(Context& ctx, const std::vector<Zero3Param*>& params) {
  std::vector<Zero3Param*> missing;
  for (Zero3Param* param : params)
    if (param->status == Zero3Status::not_available) missing.push_back(param), available_ += param->numel();
  if (missing.empty()) return;
  wait_stream(ctx, options_.gather_stream(), ctx.stream);
  const Scoped stream(ctx.stream, options_.gather_stream());
  const auto second = std::stable_partition(missing.begin(), missing.end(),
                                            [](const Zero3Param* param) { return param->secondary().defined(); });
  if (second != missing.begin()) Zero3Gather::start(ctx, {missing.begin(), second}, options_);
  if (second != missing.end()) Zero3Gather::start(ctx, {second, missing.end()}, options_);
}

void Zero3Coordinator::fetch(Context& ctx, const Module* module) {
  check_trace(ctx, module);
  if (trace_ == Trace::record) module_order_.push_back(module);
  const std::vector<Zero3Param*>& params = params_of(module);
  gather(ctx, params);
  if (module && is_leaf_module(*module)) begin_all(ctx, params);
  for (Zero3Param* param : params) {
    param->users.insert(module);
    if (!param->inflight) continue;
    const Scoped stream(ctx.stream, options_.gather_stream());
    if (ongoing_fetches_ > kMostOngoingFetches) --ongoing_fetches_, ctx.device.synchronize();
    wait_for(ctx, *param);
    ++ongoing_fetches_;
  }
  wait_stream(ctx, ctx.stream, options_.gather_stream());
  if (trace_ == Trace::complete) prefetch(ctx, params);
  ++step_;
}

/// The parameters of a leaf are waited for in the order of a set of addresses, so that as a rule every gathering has
/// made its copies before the first one is done with and goes.
void Zero3Coordinator::begin_all(Context& ctx, const std::vector<Zero3Param*>& params) {
  const Scoped stream(ctx.stream, options_.gather_stream());
  for (Zero3Param* param : params)
    if (const Ref<Zero3Gather> gather = param->inflight) gather->wait(ctx);
}

/// What the module has just fetched leaves the queue; what follows is fetched up to the size of a bucket, as far as
/// the limit of live parameters allows.
void Zero3Coordinator::prefetch(Context& ctx, const std::vector<Zero3Param*>& fetched) {
  std::set<const Zero3Param*> expected, dropped;
  for (const Zero3Param* param : fetched)
    if (last_fetched_for(*param) < step_) expected.insert(param);
  while (!queue_.empty() && dropped.size() < expected.size()) {
    const Use use = queue_.front();
    queue_.pop_front();
    last_fetched_for_[use.param] = use.step;
    dropped.insert(use.param);
  }
  assert(dropped == expected);  // the library's "tracing error"
  if (options_.prefetch_bucket_size == 0) return;

  const std::int64_t limit = std::min(options_.max_live_parameters - available_, options_.prefetch_bucket_size);
  std::vector<Zero3Param*> ahead;
  std::int64_t numel = 0;
  while (!queue_.empty() && numel < limit) {
    const Use use = queue_.front();
    queue_.pop_front();
    last_fetched_for_[use.param] = std::max(last_fetched_for(*use.param), use.step);
    if (use.param->status != Zero3Status::not_available || contains(ahead, use.param)) continue;
    ahead.push_back(use.param);
    numel += use.param->numel();
  }
  gather(ctx, ahead);
}

/// Decided once for each module and step: not what persists, what the prefetcher has passed over because it was there,
/// or what is used again within the reuse distance, which a leaf measures by all that is below the modules to come.
const std::vector<Zero3Param*>& Zero3Coordinator::params_to_release(const Module& module) {
  const auto [entry, is_new] = to_release_.try_emplace({&module, step_});
  std::vector<Zero3Param*>& params = entry->second;
  if (!is_new) return params;
  for (Zero3Param* param : params_of(&module))
    if (!param->persists && last_fetched_for(*param) <= step_) params.push_back(param);
  std::int64_t traversed = 0;
  for (auto step = static_cast<std::size_t>(step_); step < module_order_.size(); ++step) {
    if (traversed >= options_.max_reuse_distance) break;
    const Module* const next = module_order_[step];
    for (const Zero3Param* param : is_leaf_module(module) ? params_below(next) : own_params_of(next)) {
      std::erase(params, param);
      traversed += param->numel();
    }
  }
  return params;
}

void Zero3Coordinator::release(Context& ctx, const Module& module) {
  const std::vector<Zero3Param*>& params = params_of(&module);
  const std::vector<Zero3Param*>& going = trace_ == Trace::complete ? params_to_release(module) : params;
  for (Zero3Param* param : params) {
    param->users.erase(&module);
    if (contains(going, param)) release(ctx, *param);
  }
}

void Zero3Coordinator::release(Context& ctx, Zero3Param& param) {
  if (param.status != Zero3Status::available || !param.users.empty()) return;
  param.free(ctx);
  available_ -= param.numel();
}

void Zero3Coordinator::release_all(Context& ctx) {
  for (Zero3Param* param : all_) {
    wait_for(ctx, *param);
    param->users.clear();
    release(ctx, *param);
  }
}

Zero3Param* Zero3Coordinator::param_of(const Tensor& tensor) const {
  const auto found = by_tensor_.find(tensor.impl());
  return found == by_tensor_.end() ? nullptr : found->second;
}

void Zero3Coordinator::read_outside(Context& ctx, const Module& reader, const Parameter& parameter) {
  Zero3Param* param = by_parameter_.at(&parameter);
  if (param->status != Zero3Status::not_available) return;
  std::vector<Zero3Param*>& own = of_module_.at(&reader);
  if (!contains(own, param)) own.push_back(param);
  param->all_gather(ctx);
}

}  // namespace qlp
