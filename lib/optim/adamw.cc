// torch/optim/adam.py, torch 2.4 to 2.14.
#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "optim/whole_gradient.h"

namespace qlp {
namespace {

struct AdamWState {
  Tensor step, exp_avg, exp_avg_sq;
  std::int64_t steps = 0;
  std::vector<Tensor> tensors() const { return {step, exp_avg, exp_avg_sq}; }
};

class AdamWOptimizer final : public StatefulOptimizer<AdamWState> {
 public:
  AdamWOptimizer(AdamW::Loop loop, std::vector<ParameterGroup> groups)
      : StatefulOptimizer(std::move(groups)), loop_(loop) {}

  StatesAlike states_alike(DType parameter) const override { return {2, parameter}; }

 private:
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    std::vector<Tensor> squares;
    for (const auto& [parameter, state] : entries) {
      if (!state->exp_avg.defined()) {
        if (loop_ == AdamW::Loop::fused) state->step = state_of(ctx, {}, DType::float32);
        state->exp_avg = state_like(ctx, *parameter);
        state->exp_avg_sq = state_like(ctx, *parameter);
      }
      squares.push_back(state->exp_avg_sq);
    }
    const std::vector<Tensor> parameters = parameters_of(entries);
    const bool one_kernel = loop_ == AdamW::Loop::fused || loop_ == AdamW::Loop::deepspeed;
    const auto parts = one_kernel ? cut_gradients(ctx, parameters) : std::vector<Tensor>{};
    if (!one_kernel) cut_gradients(ctx, parameters, 2);  // addcmul_(exp_avg_sq, grad, grad)
    if (loop_ == AdamW::Loop::foreach) by_lists(ctx, squares);
    if (loop_ == AdamW::Loop::forloop) one_by_one(ctx, squares);
    for (const auto& [parameter, state] : entries) update(ctx, *parameter, *state);
  }

  void update(Context& ctx, const Tensor& parameter, AdamWState& state) const {
    ++state.steps;
    if (Kernels* kernels = ctx.kernels(parameter))
      kernels->adamw(ctx.stream, array_of(parameter), array_of(grad_of(parameter)), array_of(state.exp_avg),
                     array_of(state.exp_avg_sq), {.lr = lr(), .weight_decay = weight_decay(), .step = state.steps});
  }

  /// _multi_tensor_adam: by dtype, the list of sqrt(exp_avg_sq) at once; all else is in place. The list of one dtype is
  /// still named while that of the next is built.
  static void by_lists(Context& ctx, const std::vector<Tensor>& squares) {
    std::vector<Tensor> roots;
    for (const auto& list : by_dtype(squares)) {
      std::vector<Tensor> next;
      for (const Tensor& square : list) next.push_back(empty_like(ctx, square, Op::foreach_sqrt));
      roots = std::move(next);
    }
  }

  /// _single_tensor_adam: sqrt, then its quotient, beside the quotient of the parameter before.
  static void one_by_one(Context& ctx, const std::vector<Tensor>& squares) {
    Tensor denom;
    for (const Tensor& square : squares) {
      const Tensor root = empty_like(ctx, square, Op::foreach_sqrt);
      denom = empty_like(ctx, root, Op::div);
    }
  }

  AdamW::Loop loop_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const AdamW& kind, std::vector<ParameterGroup> groups) {
  return std::make_unique<AdamWOptimizer>(kind.loop, std::move(groups));
}

}  // namespace qlp
