// transformers/optimization.py, Adafactor with scale_parameter and relative_step off, as the Trainer makes it;
// transformers 4.48 to 5.24; galore_torch 1.0, adafactor.py, which has it from there.
#include <cmath>
#include <optional>

#include "optim/factored_moment.h"
#include "optim/galore_projector.h"
#include "optim/implementations.h"
#include "optim/optimizer_state.h"

namespace qlp {
namespace {

struct AdafactorState {
  FactoredMoment exp_avg_sq{};
  Tensor rms{};  ///< of the parameter
  std::int64_t steps = 0;
  std::optional<GaLoreProjector> projector{};
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all{exp_avg_sq.row, exp_avg_sq.column, exp_avg_sq.all, rms};
    if (projector) projector->add_tensors(all);
    return all;
  }
};

class AdafactorOptimizer final : public StatefulOptimizer<AdafactorState> {
 public:
  AdafactorOptimizer(std::vector<ParameterGroup> groups, const std::optional<Projection>& projection)
      : StatefulOptimizer(std::move(groups)), projection_(projection) {
    if (projection) for_projected([](AdafactorState& state) { state.projector.emplace(); });
  }
  StatesAlike states_alike(DType /*parameter*/) const override { return {1, DType::float32}; }

 private:
  /// Names of a Python loop: each holds on to its tensor until it gets the next one.
  struct Names {
    Tensor grad, p_data_fp32, update;
  };

  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) update(ctx, *parameter, *state);
  }
  /// The names outlive the loop over one group, but not the step.
  void end_step() override { names_ = {}; }

  void update(Context& ctx, const Tensor& parameter, AdafactorState& state) {
    auto& [grad, p_data_fp32, update] = names_;
    grad = grad_of(parameter);
    if (grad.dtype() != DType::float32) {
      grad = empty_like(ctx, grad_of(parameter), DType::float32, Op::to_copy);
      copy_into(ctx, grad, grad_of(parameter));
    }
    if (state.projector) grad = state.projector->project(ctx, *projection_, grad, state.steps);
    const bool factored = grad.shape().rank() >= 2;
    if (!state.rms.defined()) init_state(ctx, grad, factored, state);
    p_data_fp32 = parameter;
    const bool casts = parameter.dtype() != DType::float32;
    if (casts)
      p_data_fp32 = empty_like(ctx, parameter, DType::float32, Op::to_copy), copy_into(ctx, p_data_fp32, parameter);
    state.rms = root_mean_square(ctx, p_data_fp32);
    state.rms.storage().set_label({Category::optimizer_state, static_cast<std::uint32_t>(Op::div), ctx.module});

    constexpr double kDecayRate = -0.8;
    const double decay = 1 - std::pow(static_cast<double>(++state.steps), kDecayRate);
    scale_by_moment(ctx, state.exp_avg_sq, grad, decay, update);
    compute(ctx, Unary::mul, update, update, lr());
    if (state.projector) update = state.projector->project_back(ctx, *projection_, update);
    const Tensor negative = empty_like(ctx, update, Op::neg);
    compute(ctx, Unary::neg, negative, update);
    if (weight_decay() != 0) compute(ctx, Unary::mul, p_data_fp32, p_data_fp32, 1 - lr() * weight_decay());
    compute(ctx, Binary::add, p_data_fp32, p_data_fp32, negative);
    if (casts) copy_into(ctx, parameter, p_data_fp32);
  }

  static void init_state(Context& ctx, const Tensor& grad, bool factored, AdafactorState& state) {
    if (!factored) {
      state.exp_avg_sq.all = state_like(ctx, grad);
      return;
    }
    // Made on the host and copied, which waits for the GPU.
    state.exp_avg_sq.row = state_of(ctx, without(grad.shape(), -1), DType::float32);
    ctx.device.synchronize();
    state.exp_avg_sq.column = state_of(ctx, without(grad.shape(), -2), DType::float32);
    ctx.device.synchronize();
  }

  std::optional<Projection> projection_;
  Names names_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adafactor(std::vector<ParameterGroup> groups,
                                          const std::optional<Projection>& projection) {
  return std::make_unique<AdafactorOptimizer>(std::move(groups), projection);
}

}  // namespace qlp
