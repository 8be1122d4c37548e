#include "nn/fused_experts.h"

#include <utility>

#include "autograd/grouped_mm.h"
#include "autograd/indexing.h"
#include "autograd/parallel.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "nn/clamped_gate.h"
#include "tensor/compute.h"
#include "tensor/cub_scratch.h"
#include "tensor/factories.h"
#include "tensor/routing_kernels.h"

namespace qlp {
namespace {

struct Groups {
  Tensor keys, counts, ends;  ///< what the source names histc_input, tokens_per_expert, offsets
};

Groups count_groups(Context& ctx, const Tensor& sorted, std::int64_t experts) {
  Groups groups;
  groups.keys = empty_like(ctx, sorted, DType::int32, Op::to_copy);
  copy_into(ctx, groups.keys, sorted);
  groups.counts = empty(ctx, {experts}, DType::int32, Op::histc);
  groups.ends = empty(ctx, {experts}, DType::int32, Op::cumsum);
  scratch(ctx, scan_bytes(experts, DType::int32, ctx.device.traits()), Op::cumsum);
  if (auto* kernels = routing_kernels(ctx, groups.keys))
    kernels->count_groups(ctx.stream, array_of(groups.counts), array_of(groups.ends), array_of(groups.keys));
  return groups;
}

/// The permutation that undoes `order`.
Tensor inverse(Context& ctx, const Tensor& order) {
  Tensor inverted = empty_like(ctx, order, Op::empty_like);
  const Tensor range = empty_like(ctx, order, Op::arange);
  fill_range(ctx, range);
  scatter_rows(ctx, inverted, range, order);
  return inverted;
}

}  // namespace

FusedExperts::FusedExperts(std::string name, const ExpertsShape& shape)
    : Module(ModuleKind::experts, std::move(name)), shape_(shape) {
  const std::int64_t e = shape.experts, h = shape.hidden, i = shape.intermediate;
  const auto stack = [&](std::string leaf, std::int64_t in, std::int64_t out) {
    const Shape of_stack = shape.biased ? Shape{e, in, out} : Shape{e, out, in};
    return &add_parameter(std::move(leaf), ParamRole::base_weight, of_stack);
  };
  gate_up_ = stack("gate_up_proj", h, 2 * i);
  if (shape.biased) gate_up_bias_ = &add_parameter("gate_up_proj_bias", ParamRole::bias, {e, 2 * i});
  down_ = stack("down_proj", i, h);
  if (shape.biased) down_bias_ = &add_parameter("down_proj_bias", ParamRole::bias, {e, h});
  if (!shape.biased) gate_up_->fused_parts = 2, down_->fused_parts = 1;
}

void FusedExperts::share(const RankGroup& group) {
  group_ = group;
  gate_up_->mesh = down_->mesh = LayerMesh::tp;
  gate_up_->parts = down_->parts = group.size;
  gate_up_->cut_dim = 1, down_->cut_dim = 2;
}

void FusedExperts::spread(const ExpertParallel& parallel) {
  parallel_ = parallel;
  gate_up_->mesh = down_->mesh = LayerMesh::ep;
  gate_up_->parts = down_->parts = parallel.experts.size;
}

void FusedExperts::adapt(std::optional<std::int64_t> gate_up_r, std::optional<std::int64_t> down_r, double scaling) {
  // The wrapper of the second stack stands around that of the first.
  const std::string inner = down_r ? name() + ".base_layer" : name();
  if (gate_up_r) {
    gate_up_lora_ = std::make_unique<ParamLora>(inner, *gate_up_, *gate_up_r, scaling, shape_.biased);
    add_child(*gate_up_lora_);
  }
  if (!down_r) return;
  down_lora_ = std::make_unique<ParamLora>(name(), *down_, *down_r, scaling, shape_.biased);
  add_child(*down_lora_);
}

Tensor FusedExperts::forward(Context& ctx, const Tensor& input, const Routing& routing) {
  return call(ctx, input, [&](const Tensor& hidden) {
    if (parallel_.experts.size > 1) return dispatch(ctx, hidden, routing);
    ParamLora::Factors gate_up, down;
    if (down_lora_) down = down_lora_->activate_stack(ctx);
    if (gate_up_lora_) gate_up = gate_up_lora_->activate_stack(ctx);
    if (group_.size == 1) return run(ctx, hidden, routing, gate_up, down);
    // MoeExpertsParallel in transformers distributed/tensor_parallel.py
    const Tensor mine = all_reduce_gradient_in_place(ctx, hidden, group_);
    Routing shared = routing;
    shared.weights = all_reduce_gradient_in_place(ctx, routing.weights, group_);
    return all_reduce_in_place(ctx, run(ctx, mine, shared, gate_up, down), group_);
  });
}

Tensor FusedExperts::dispatch(Context& ctx, const Tensor& hidden, const Routing& routing) {
  DispatchState state;
  Tensor results;
  {
    const Dispatched mine =
        dispatch_tokens(ctx, hidden, routing, shape_.experts * parallel_.experts.size, parallel_, state);
    results = run(ctx, mine.tokens, mine.routing, {}, {});
    results = combine_tokens(ctx, results, state, parallel_);
  }
  return to(ctx, results, hidden.dtype());
}

Tensor FusedExperts::activate(Context& ctx, const Tensor& states) const {
  if (shape_.biased) {
    ClampedGate names;
    apply_clamped_gate(ctx, states, names);
    return names.out;
  }
  const auto halves = split(ctx, states, {shape_.intermediate, shape_.intermediate}, -1);
  const Tensor activated = silu(ctx, halves[0]);
  return mul(ctx, activated, halves[1]);
}

Tensor FusedExperts::run(Context& ctx, const Tensor& hidden, const Routing& routing,
                         const ParamLora::Factors& gate_up_factors, const ParamLora::Factors& down_factors) {
  const std::int64_t tokens = hidden.size(0), top_k = routing.indices.size(-1), pairs = tokens * top_k;
  const Tensor sample_weights = reshape(ctx, routing.weights, {pairs});
  Sorted sorted = sort(ctx, routing.indices.view({pairs}));
  Tensor selected;
  {
    const Tensor of_token = token_of_pair(ctx, sorted.order, top_k);
    selected = index_rows(ctx, hidden, of_token);
  }
  Tensor weights = index_rows(ctx, sample_weights, sorted.order);
  Groups groups = count_groups(ctx, sorted.values, shape_.experts);
  // Rows of other ranks' experts are left out; here there are none, but the code does not know.
  const bool masks = parallel_.experts.size > 1;
  Tensor others;
  if (masks) {
    others = empty(ctx, {pairs, 1}, DType::boolean, Op::ge);
    fill(ctx, others, 0);
    selected = mask_rows(ctx, selected, others, true);
  }

  const auto product = [&](const Tensor& x, const Tensor& stack) {
    const Tensor rows = to(ctx, x, stack.dtype());
    return shape_.biased ? grouped_mm_turned(ctx, rows, stack, groups.ends) : grouped_mm(ctx, rows, stack, groups.ends);
  };
  Tensor biases;  // of each row
  if (gate_up_bias_) biases = index_rows(ctx, gate_up_bias_->tensor, sorted.values);
  // torch.nn.utils.parametrize.cached() keeps what is folded until the layer is done.
  const Tensor gate_up = gate_up_lora_ ? gate_up_lora_->fold(ctx, gate_up_factors) : gate_up_->tensor;
  Tensor states = product(selected, gate_up);
  if (biases.defined()) states = add_in_place(ctx, states, biases);
  if (masks) states = mask_rows(ctx, states, others, false);
  states = activate(ctx, states);
  const Tensor down = down_lora_ ? down_lora_->fold(ctx, down_factors) : down_->tensor;
  if (down_bias_) biases = index_rows(ctx, down_bias_->tensor, sorted.values);
  states = product(states, down);
  if (biases.defined()) states = add_in_place(ctx, states, biases);
  if (masks) states = mask_rows(ctx, states, others, false);
  Tensor weighted;
  {
    const Tensor column = reshape(ctx, weights, {pairs, 1});
    weighted = mul(ctx, states, column);
  }
  Tensor inverted = inverse(ctx, sorted.order);
  weighted = index_rows(ctx, weighted, inverted);
  Tensor sum = sum_middle(ctx, reshape(ctx, weighted, {tokens, top_k, hidden.size(-1)}));
  Tensor out = to(ctx, sum, hidden.dtype());
  // As Python drops its locals.
  sorted.values.reset(), sorted.order.reset(), selected.reset(), weights.reset();
  groups.keys.reset(), groups.counts.reset(), groups.ends.reset();
  states.reset(), weighted.reset(), inverted.reset(), sum.reset();
  return out;
}

}  // namespace qlp
