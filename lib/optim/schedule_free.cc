// schedulefree 1.4, adamw_schedulefree.py, radam_schedulefree.py, sgd_schedulefree.py; gradients are scaled in place.
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
      if (base_ != ScheduleFree::Base::sgd) state->exp_avg_sq = state_like(ctx, *parameter);
    }
    if (!divides()) return;
    std::vector<Tensor> next;
    for (const auto& entry : entries) next.push_back(empty_like(ctx, entry.state->exp_avg_sq, Op::div));
    denom_ = std::move(next);
  }
  void end_step() override { denom_.clear(), ++step_; }

  ScheduleFree::Base base_;
  std::vector<Tensor> denom_;
  int step_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_schedule_free(const ScheduleFree& kind, std::vector<ParameterGroup> groups) {
  return std::make_unique<ScheduleFreeOptimizer>(kind.base, std::move(groups));
}

}  // namespace qlp
