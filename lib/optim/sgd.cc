// torch/optim/sgd.py, _multi_tensor_sgd: everything is in place, but for gradients that weight decay is added to, which
// go where momentum takes their place.
#include "optim/decayed_gradients.h"
#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "optim/whole_gradient.h"
#include "tensor/compute.h"

namespace qlp {
namespace {

struct SgdState {
  Tensor momentum_buffer;
  std::vector<Tensor> tensors() const { return {momentum_buffer}; }
};

class SgdOptimizer final : public StatefulOptimizer<SgdState> {
 public:
  SgdOptimizer(const Sgd& kind, std::vector<ParameterGroup> groups)
      : StatefulOptimizer(std::move(groups)), momentum_(kind.momentum) {}

  StatesAlike states_alike(DType parameter) const override { return {momentum_ != 0 ? 1U : 0U, parameter}; }

 private:
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    cut_gradients(ctx, parameters_of(entries));  // for add_(parameter, grad)
    for (const auto& list : by_dtype(entries, [](const Entry& entry) { return entry.parameter->dtype(); })) {
      std::vector<Tensor> grads = decayed_gradients(ctx, parameters_of(list), weight_decay());
      if (momentum_ != 0)
        for (std::size_t i = 0; i < list.size(); ++i) grads[i] = with_momentum(ctx, *list[i].state, grads[i]);
      for (std::size_t i = 0; i < list.size(); ++i)
        compute(ctx, Binary::add, *list[i].parameter, *list[i].parameter, grads[i], -lr());
    }
  }

  /// The first gradient as it is.
  Tensor with_momentum(Context& ctx, SgdState& state, const Tensor& grad) const {
    const bool first = !state.momentum_buffer.defined();
    if (first) state.momentum_buffer = state_like(ctx, grad);
    if (!first) compute(ctx, Unary::mul, state.momentum_buffer, state.momentum_buffer, momentum_);
    compute(ctx, Binary::add, state.momentum_buffer, state.momentum_buffer, grad);
    return state.momentum_buffer;
  }

  double momentum_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const Sgd& kind, std::vector<ParameterGroup> groups) {
  return std::make_unique<SgdOptimizer>(kind, std::move(groups));
}

}  // namespace qlp
