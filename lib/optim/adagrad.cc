// torch/optim/adagrad.py, torch 2.4 to 2.14.
#include "optim/adagrad.h"

#include "optim/decayed_gradients.h"
#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "optim/whole_gradient.h"
#include "tensor/collective.h"

namespace qlp {
namespace {

class AdagradOptimizer final : public StatefulOptimizer<AdagradState> {
 public:
  AdagradOptimizer(Context& ctx, std::vector<ParameterGroup> groups, AdagradStart start)
      : StatefulOptimizer(std::move(groups)) {
    if (start == AdagradStart::in_step) return;
    auto states = first_adagrad_states(ctx, this->groups(), start == AdagradStart::moved);
    each([&, g = std::size_t{0}, i = std::size_t{0}](const Tensor&, AdagradState& state) mutable {
      while (i == states[g].size()) ++g, i = 0;
      state = std::move(states[g][i++]);
    });
  }

  StatesAlike states_alike(DType parameter) const override { return {1, parameter}; }

 private:
  /// _multi_tensor_adagrad: by dtype, the list of sqrt(sum) and that of the scaled gradients, which takes the place of
  /// those that weight decay was added to. Those of one dtype are still named while those of the next are built.
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries)
      if (!state->sum.defined()) state->sum = state_like(ctx, *parameter);
    if (entries.front().parameter->on_host()) return step_on_host(ctx, entries);
    std::vector<Tensor> std, numerator;
    for (const auto& list : by_dtype(entries, [](const Entry& entry) { return entry.parameter->dtype(); })) {
      const std::vector<Tensor> parameters = parameters_of(list);
      const std::vector<Tensor> grads = decayed_gradients(ctx, parameters, weight_decay());
      cut_gradients(ctx, parameters, 2);  // addcmul_(sum, grad, grad)
      std::vector<Tensor> roots, scaled;
      for (const auto& [parameter, state] : list) roots.push_back(empty_like(ctx, state->sum, Op::foreach_sqrt));
      std = std::move(roots);
      for (std::size_t i = 0; i < parameters.size(); ++i)
        scaled.push_back(weight_decay() != 0 ? grads[i] : like_gradient(ctx, parameters[i], Op::foreach_mul));
      numerator = std::move(scaled);
      cut_gradients(ctx, parameters);  // of the scaled ones, in addcdiv_
      for (std::size_t i = 0; i < list.size(); ++i) update(ctx, list[i], grads[i], {std[i], numerator[i]});
    }
  }

  /// _single_tensor_adagrad
  void step_on_host(Context& ctx, const std::vector<Entry>& entries) const {
    for (const Entry& entry : entries) {
      const std::vector<Tensor> grads = decayed_gradients(ctx, {*entry.parameter}, weight_decay());
      const Tensor root = empty_like(ctx, entry.state->sum, Op::foreach_sqrt);
      const Tensor scaled = ctx.kernels(root) ? empty_like(ctx, grads.front(), Op::foreach_mul) : grads.front();
      update(ctx, entry, grads.front(), {root, scaled});
    }
  }

  /// Of one parameter.
  struct Quotient {
    Tensor std, numerator;
  };
  void update(Context& ctx, const Entry& entry, const Tensor& grad, const Quotient& quotient) const {
    constexpr double kEps = 1e-10;
    const auto& [parameter, state] = entry;
    const auto& [std, numerator] = quotient;
    compute(ctx, Binary::mul, std, grad, grad);  // addcmul_ needs no such place
    compute(ctx, Binary::add, state->sum, state->sum, std);
    compute(ctx, Unary::sqrt, std, state->sum);
    compute(ctx, Unary::add, std, std, kEps);
    compute(ctx, Unary::mul, numerator, grad, -lr());
    compute(ctx, Binary::div, numerator, numerator, std);
    compute(ctx, Binary::add, *parameter, *parameter, numerator);
  }
};

}  // namespace

std::vector<Tensor> AdagradState::tensors() const {
  std::vector<Tensor> there;
  for (const Tensor& tensor : {step, sum})
    if (tensor.defined()) there.push_back(tensor);
  return there;
}

std::vector<std::vector<AdagradState>> first_adagrad_states(Context& ctx, const std::vector<ParameterGroup>& groups,
                                                            bool counts_move) {
  std::vector<std::vector<AdagradState>> states;
  for (const ParameterGroup& group : groups) {
    states.emplace_back();
    for (const Tensor& parameter : group) states.back().push_back({.sum = state_like(ctx, parameter), .step = {}});
  }
  if (!counts_move) return states;
  std::vector<Tensor> moved;
  for (auto& group : states)
    for (AdagradState& state : group) {
      state.step = state_of(ctx, {}, DType::float32);
      if (state.sum.on_host()) moved.push_back(to_device(ctx, state.sum));
    }
  for (auto& group : states)
    for (AdagradState& state : group)
      if (state.sum.on_host()) copy_to_host(ctx, state.sum.storage().bytes());
  return states;
}

std::unique_ptr<Optimizer> make_adagrad(Context& ctx, std::vector<ParameterGroup> groups, AdagradStart start) {
  return std::make_unique<AdagradOptimizer>(ctx, std::move(groups), start);
}

}  // namespace qlp
