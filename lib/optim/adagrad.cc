// torch/optim/adagrad.py, torch 2.4 to 2.14.
#include "optim/decayed_gradients.h"
#include "optim/optimizer_state.h"
#include "optim/whole_gradient.h"

namespace qlp {
namespace {

struct AdagradState {
  Tensor sum, step;
  std::vector<Tensor> tensors() const { return {step, sum}; }
};

class AdagradOptimizer final : public StatefulOptimizer<AdagradState> {
 public:
  /// Sums are there from the beginning. What an optimizer already keeps accelerate moves to the GPU, counts of steps
  /// among it (accelerate/optimizer.py, AcceleratedOptimizer.__init__).
  AdagradOptimizer(Context& ctx, std::vector<ParameterGroup> groups) : StatefulOptimizer(std::move(groups)) {
    each([&](const Tensor& parameter, AdagradState& state) { state.sum = state_like(ctx, parameter); });
    each([&](const Tensor&, AdagradState& state) { state.step = state_of(ctx, {}, DType::float32); });
  }

  StatesAlike states_alike(DType parameter) const override { return {1, parameter}; }

 private:
  /// _multi_tensor_adagrad: by dtype, the list of sqrt(sum) and that of the scaled gradients, which takes the place of
  /// those that weight decay was added to. Those of one dtype are still named while those of the next are built.
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
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

std::unique_ptr<Optimizer> make_adagrad(Context& ctx, std::vector<ParameterGroup> groups) {
  return std::make_unique<AdagradOptimizer>(ctx, std::move(groups));
}

}  // namespace qlp
