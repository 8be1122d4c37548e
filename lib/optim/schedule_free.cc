// schedulefree 1.4, adamw_schedulefree.py, radam_schedulefree.py, sgd_schedulefree.py; gradients are scaled in place.
#include <cmath>

#include "optim/optimizer_state.h"

namespace qlp {
namespace {

struct ScheduleFreeState {
  Tensor z, exp_avg_sq;
};

class ScheduleFreeOptimizer final : public StatefulOptimizer<ScheduleFreeState> {
 public:
  ScheduleFreeOptimizer(ScheduleFree::Base base, std::vector<ParameterGroup> groups)
      : StatefulOptimizer(std::move(groups)), base_(base) {}

 private:
  /// RAdam divides once it has seen enough steps to trust its variance, the sixth for the Trainer's betas; here from
  /// the second on, so that a short run has what a long one meets.
  bool divides() const {
    return base_ == ScheduleFree::Base::adamw || (base_ == ScheduleFree::Base::radam && step_ > 0);
  }

  /// The list of denominators is for all dtypes at once. That of a group stays until that of the next is there.
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) {
      if (state->z.defined()) continue;
      state->z = state_like(ctx, *parameter);
      copy_into(ctx, state->z, *parameter);
      if (base_ != ScheduleFree::Base::sgd) state->exp_avg_sq = state_like(ctx, *parameter);
    }
    if (divides()) {
      std::vector<Tensor> next;
      for (const auto& entry : entries) next.push_back(empty_like(ctx, entry.state->exp_avg_sq, Op::div));
      denom_ = std::move(next);
      for (std::size_t i = 0; i < entries.size(); ++i) normalize(ctx, entries[i], denom_[i]);
    }
    for (const Entry& entry : entries) average(ctx, entry);
  }
  void end_step() override { denom_.clear(), ++step_; }

  /// The gradient over the root of the mean of its squares.
  void normalize(Context& ctx, const Entry& entry, const Tensor& denom) const {
    constexpr double kBeta2 = 0.999, kEps = 1e-8;
    const auto& [parameter, state] = entry;
    const Tensor& grad = grad_of(*parameter);
    compute(ctx, Binary::mul, denom, grad, grad, 1 - kBeta2);  // addcmul_ needs no such place
    compute(ctx, Unary::mul, state->exp_avg_sq, state->exp_avg_sq, kBeta2);
    compute(ctx, Binary::add, state->exp_avg_sq, state->exp_avg_sq, denom);
    compute(ctx, Unary::mul, denom, state->exp_avg_sq, 1 / (1 - std::pow(kBeta2, step_ + 1)));
    compute(ctx, Unary::sqrt, denom, denom);
    compute(ctx, Unary::add, denom, denom, kEps);
    compute(ctx, Binary::div, grad, grad, denom);
  }

  /// y moves towards z, which takes the step. With a rate that stays the same all steps weigh the same.
  void average(Context& ctx, const Entry& entry) const {
    constexpr double kBeta1 = 0.9;
    const double weight = 1.0 / (step_ + 1);
    const auto& [y, state] = entry;
    const Tensor& grad = grad_of(*y);
    compute(ctx, Unary::mul, *y, *y, 1 - weight);
    compute(ctx, Binary::add, *y, *y, state->z, weight);
    compute(ctx, Binary::add, *y, *y, grad, lr() * (kBeta1 * (1 - weight) - 1));
    compute(ctx, Binary::add, state->z, state->z, grad, -lr());
  }

  ScheduleFree::Base base_;
  std::vector<Tensor> denom_;
  int step_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_schedule_free(const ScheduleFree& kind, std::vector<ParameterGroup> groups) {
  return std::make_unique<ScheduleFreeOptimizer>(kind.base, std::move(groups));
}

}  // namespace qlp
