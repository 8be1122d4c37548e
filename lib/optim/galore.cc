// galore_torch 1.0, adamw.py.
#include <cmath>
#include <optional>

#include "optim/galore_projector.h"
#include "optim/implementations.h"
#include "optim/optimizer_state.h"

namespace qlp {
namespace {

constexpr AdamWNumbers kGaLore{
    .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6};  // the class's defaults: the Trainer gives the rate alone

struct GaLoreState {
  std::optional<GaLoreProjector> projector{};
  std::int64_t steps = 0;
  Tensor exp_avg{}, exp_avg_sq{};
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all{exp_avg, exp_avg_sq};
    if (projector) projector->add_tensors(all);
    return all;
  }
};

class GaLoreAdamW final : public StatefulOptimizer<GaLoreState> {
 public:
  /// The second group has what is projected.
  GaLoreAdamW(const Projection& how, std::vector<ParameterGroup> groups, const std::vector<CutParameter>& cut)
      : StatefulOptimizer(std::move(groups)), how_(how), cut_(cut) {
    for_projected([](GaLoreState& state) { state.projector.emplace(); });
  }

 private:
  /// The names of the step function, which hold on to what they were given for the last parameter.
  struct Names {
    Tensor grad, denom, norm_grad;
  };

  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) update(ctx, *parameter, *state);
  }
  void end_step() override { names_ = {}; }

  void update(Context& ctx, const Tensor& parameter, GaLoreState& state) {
    auto& [grad, denom, norm_grad] = names_;
    grad = grad_of(parameter);
    const CutRows* const cut = cut_.rows_of(parameter);
    if (state.projector) grad = state.projector->project(ctx, how_, grad, state.steps, cut);
    const bool all_rows = cut && state.projector && state.projector->projects_rows();
    if (!state.exp_avg.defined()) {
      state.exp_avg = state_like(ctx, grad);
      state.exp_avg_sq = state_like(ctx, grad);
    }
    const auto steps = static_cast<double>(++state.steps);
    average(ctx, state, all_rows ? cut : nullptr);
    norm_grad = empty_like(ctx, denom, Op::div);
    compute(ctx, Binary::div, norm_grad, state.exp_avg, denom);
    if (state.projector) norm_grad = state.projector->project_back(ctx, how_, norm_grad);
    const double step_size =
        lr() * std::sqrt(1 - std::pow(kGaLore.beta2, steps)) / (1 - std::pow(kGaLore.beta1, steps));
    if (all_rows) {
      const Tensor own = empty_like(ctx, parameter, Op::clone);
      copy_into(ctx, own, norm_grad.narrow(0, cut->first, own.size(0)));
      compute(ctx, Binary::add, parameter, parameter, own, -step_size);
    } else {
      compute(ctx, Binary::add, parameter, parameter, norm_grad, -step_size);
    }
  }

  /// Both averages in place, and the root of the second. `sums`: ranks that each have a part of the gradient, which is
  /// summed every time that it is used.
  void average(Context& ctx, const GaLoreState& state, const CutRows* sums) {
    Tensor& denom = names_.denom;
    const auto grad = [&] { return sums ? summed(ctx, names_.grad, sums->group) : names_.grad; };
    compute(ctx, Unary::mul, state.exp_avg, state.exp_avg, kGaLore.beta1);
    compute(ctx, Binary::add, state.exp_avg, state.exp_avg, grad(), 1 - kGaLore.beta1);
    compute(ctx, Unary::mul, state.exp_avg_sq, state.exp_avg_sq, kGaLore.beta2);
    {
      const Tensor one = grad(), other = grad();
      if (!sums) denom = empty_like(ctx, state.exp_avg_sq, Op::foreach_sqrt);
      const Tensor& squares = sums ? other : denom;
      compute(ctx, Binary::mul, squares, one, other, 1 - kGaLore.beta2);
      compute(ctx, Binary::add, state.exp_avg_sq, state.exp_avg_sq, squares);
    }
    if (sums) denom = empty_like(ctx, state.exp_avg_sq, Op::foreach_sqrt);
    compute(ctx, Unary::sqrt, denom, state.exp_avg_sq);
    compute(ctx, Unary::add, denom, denom, kGaLore.eps);
  }

  Projection how_;
  CutParameters cut_;
  Names names_;
};

}  // namespace

std::unique_ptr<Optimizer> make_galore(const GaLore& kind, std::vector<ParameterGroup> groups,
                                       const OptimizerSetup& setup) {
  const Projection how{kind.low_rank, setup.behaviour.cusolver, kind.layerwise};
  if (kind.base == GaLore::Base::adamw_8bit) {
    constexpr int kBits = 8;
    return make_bitsandbytes({.algorithm = Bitsandbytes::Algorithm::adamw, .optim_bits = kBits}, std::move(groups),
                             {.behaviour = setup.behaviour}, how);
  }
  if (kind.base == GaLore::Base::adafactor) return make_adafactor(std::move(groups), how);
  return std::make_unique<GaLoreAdamW>(how, std::move(groups), setup.cut);
}

}  // namespace qlp
