// torch-optimi 0.3, stableadamw.py: one Triton kernel after another, all in place.
#include "optim/optimizer_state.h"

namespace qlp {
namespace {

struct StableAdamWState {
  Tensor exp_avg, exp_avg_sq, eps_sq, kahan_comp, mean_square;
};

class StableAdamWOptimizer final : public StatefulOptimizer<StableAdamWState> {
 public:
  using StatefulOptimizer::StatefulOptimizer;

 private:
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) {
      if (state->exp_avg.defined()) continue;
      state->exp_avg = state_like(ctx, *parameter);
      state->exp_avg_sq = state_like(ctx, *parameter);
      state->eps_sq = state_of(ctx, {}, parameter->dtype());
      ctx.device.synchronize();  // a number from the host
      // What 16-bit parameters lose in rounding is summed up; others have a place for nothing.
      const bool compensates = parameter->dtype() != DType::float32;
      state->kahan_comp = compensates ? state_like(ctx, *parameter) : state_of(ctx, {1}, DType::uint8);
      state->mean_square = state_of(ctx, {1}, DType::float32);
    }
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_stable_adamw(std::vector<ParameterGroup> groups) {
  return std::make_unique<StableAdamWOptimizer>(std::move(groups));
}

}  // namespace qlp
