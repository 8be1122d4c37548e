// torch/optim/rmsprop.py, torch 2.4 to 2.14.
#include "optim/decayed_gradients.h"
#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "optim/whole_gradient.h"

namespace qlp {
namespace {

struct RmsPropState {
  Tensor square_avg;
  std::vector<Tensor> tensors() const { return {square_avg}; }
};

class RmsPropOptimizer final : public StatefulOptimizer<RmsPropState> {
 public:
  using StatefulOptimizer::StatefulOptimizer;
  StatesAlike states_alike(DType parameter) const override { return {1, parameter}; }

 private:
  /// _multi_tensor_rmsprop: by dtype, the list of sqrt(square_avg), beside that of the dtype before.
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries)
      if (!state->square_avg.defined()) state->square_avg = state_like(ctx, *parameter);
    const std::vector<Tensor> parameters = parameters_of(entries);
    cut_gradients(ctx, parameters, 2);  // addcmul_(square_avg, grad, grad)
    std::vector<Tensor> avg;
    for (const auto& list : by_dtype(entries, [](const Entry& entry) { return entry.parameter->dtype(); })) {
      const std::vector<Tensor> grads = decayed_gradients(ctx, parameters_of(list), weight_decay());
      std::vector<Tensor> next;
      for (const Entry& entry : list) next.push_back(empty_like(ctx, entry.state->square_avg, Op::foreach_sqrt));
      avg = std::move(next);
      for (std::size_t i = 0; i < list.size(); ++i) update(ctx, list[i], grads[i], avg[i]);
    }
    cut_gradients(ctx, parameters);  // addcdiv_(parameter, grad, avg)
  }

  void update(Context& ctx, const Entry& entry, const Tensor& grad, const Tensor& avg) const {
    constexpr double kAlpha = 0.99, kEps = 1e-8;
    const auto& [parameter, state] = entry;
    compute(ctx, Binary::mul, avg, grad, grad, 1 - kAlpha);  // addcmul_ needs no such place
    compute(ctx, Unary::mul, state->square_avg, state->square_avg, kAlpha);
    compute(ctx, Binary::add, state->square_avg, state->square_avg, avg);
    compute(ctx, Unary::sqrt, avg, state->square_avg);
    compute(ctx, Unary::add, avg, avg, kEps);
    compute(ctx, Binary::div, avg, grad, avg);
    compute(ctx, Binary::add, *parameter, *parameter, avg, -lr());
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_rmsprop(std::vector<ParameterGroup> groups) {
  return std::make_unique<RmsPropOptimizer>(std::move(groups));
}

}  // namespace qlp
