// schedulefree 1.4, adamw_schedulefree.py, radam_schedulefree.py, sgd_schedulefree.py; gradients are scaled in place.
#include <algorithm>
#include <cmath>
#include <utility>

#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "optim/whole_gradient.h"

namespace qlp {
namespace {

struct ScheduleFreeState {
  Tensor z, exp_avg_sq;
  std::vector<Tensor> tensors() const { return {z, exp_avg_sq}; }
};

/// What a group has come to.
struct Progress {
  int steps = 0;
  double highest_rate = 0, weights = 0;
  double rate = 0, share = 0;  ///< of the step that is made
};

class ScheduleFreeOptimizer final : public StatefulOptimizer<ScheduleFreeState> {
 public:
  ScheduleFreeOptimizer(ScheduleFree::Base base, std::vector<ParameterGroup> groups)
      : StatefulOptimizer(std::move(groups)), base_(base), progress_(this->groups().size()) {}

  StatesAlike states_alike(DType parameter) const override {
    return {base_ == ScheduleFree::Base::sgd ? std::size_t{1} : std::size_t{2}, parameter};
  }

 private:
  /// RAdam divides once it has seen enough steps to trust its variance, the fifth for the Trainer's betas; here its
  /// quotients are made from the second on, so that a short run has what a long one meets.
  bool divides() const {
    return base_ == ScheduleFree::Base::adamw || (base_ == ScheduleFree::Base::radam && progress().steps > 0);
  }

  /// The list of denominators is for all dtypes at once. That of a group stays until that of the next is there.
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) {
      if (state->z.defined()) continue;
      state->z = state_like(ctx, *parameter);
      copy_into(ctx, state->z, *parameter);
      if (base_ != ScheduleFree::Base::sgd) state->exp_avg_sq = state_like(ctx, *parameter);
    }
    begin_step();
    const std::vector<Tensor> parameters = parameters_of(entries);
    if (base_ != ScheduleFree::Base::sgd) cut_gradients(ctx, parameters, 2);  // addcmul_(exp_avg_sq, grad, grad)
    if (divides()) {
      std::vector<Tensor> next;
      for (const auto& entry : entries) next.push_back(empty_like(ctx, entry.state->exp_avg_sq, Op::div));
      denom_ = std::move(next);
      const auto whole = gathered_beside_gradients(ctx, parameters);
      for (std::size_t i = 0; i < entries.size(); ++i) normalize(ctx, entries[i], denom_[i]);
    } else if (base_ == ScheduleFree::Base::radam) {
      for (const auto& [parameter, state] : entries) {  // added to nothing
        const Tensor& grad = grad_of(*parameter);
        compute(ctx, Binary::mul, state->exp_avg_sq, grad, grad, 1 - kBeta2);
      }
    }
    if (weight_decay() != 0) gathered_beside_gradients(ctx, parameters);
    for (int i = 0; i < 2; ++i) cut_gradients(ctx, parameters);  // add_(y, grad), sub_(z, grad)
    for (const Entry& entry : entries) average(ctx, entry);
    ++progress().steps;
  }
  void end_step() override { denom_.clear(); }

  Progress& progress() { return progress_[group()]; }
  const Progress& progress() const { return progress_[group()]; }

  /// The rate, which RAdam rectifies: 0 while its variance is not to be trusted (silent_sgd_phase). A step weighs as
  /// much as the square of the highest rate so far (weight_lr_power 2).
  void begin_step() {
    Progress& p = progress();
    const double step = p.steps + 1, power = std::pow(kBeta2, step);
    p.rate = lr();
    if (base_ == ScheduleFree::Base::radam) {
      const double most = 2 / (1 - kBeta2) - 1, length = most - 2 * step * power / (1 - power);
      p.rate *= length > 4 ? std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) : 0;
    }
    p.highest_rate = std::max(p.highest_rate, p.rate);
    const double weight = p.highest_rate * p.highest_rate;
    p.weights += weight;
    p.share = p.weights > 0 ? weight / p.weights : 0;
  }

  /// The gradient over the root of the mean of its squares; only that mean while the rate is 0.
  void normalize(Context& ctx, const Entry& entry, const Tensor& denom) const {
    constexpr double kEps = 1e-8;
    const auto& [parameter, state] = entry;
    const Tensor& grad = grad_of(*parameter);
    compute(ctx, Binary::mul, denom, grad, grad, 1 - kBeta2);  // addcmul_ needs no such place
    compute(ctx, Unary::mul, state->exp_avg_sq, state->exp_avg_sq, kBeta2);
    compute(ctx, Binary::add, state->exp_avg_sq, state->exp_avg_sq, denom);
    compute(ctx, Unary::mul, denom, state->exp_avg_sq, 1 / (1 - std::pow(kBeta2, progress().steps + 1)));
    compute(ctx, Unary::sqrt, denom, denom);
    compute(ctx, Unary::add, denom, denom, kEps);
    compute(ctx, Binary::div, grad, grad, denom);
  }

  /// y moves towards z, which takes the step.
  void average(Context& ctx, const Entry& entry) const {
    constexpr double kBeta1 = 0.9;
    const auto& [y, state] = entry;
    const auto& [steps, highest, weights, rate, share] = progress();
    const Tensor& grad = grad_of(*y);
    if (weight_decay() != 0) compute(ctx, Binary::add, grad, grad, *y, weight_decay());
    compute(ctx, Unary::mul, *y, *y, 1 - share);
    compute(ctx, Binary::add, *y, *y, state->z, share);
    compute(ctx, Binary::add, *y, *y, grad, rate * (kBeta1 * (1 - share) - 1));
    compute(ctx, Binary::add, state->z, state->z, grad, -rate);
  }

  static constexpr double kBeta2 = 0.999;

  ScheduleFree::Base base_;
  std::vector<Progress> progress_;  ///< of each group
  std::vector<Tensor> denom_;
};

}  // namespace

std::unique_ptr<Optimizer> make_schedule_free(const ScheduleFree& kind, std::vector<ParameterGroup> groups) {
  return std::make_unique<ScheduleFreeOptimizer>(kind.base, std::move(groups));
}

}  // namespace qlp
