// torch-optimi 0.3, stableadamw.py: one Triton kernel after another, all in place.
#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "tensor/compute.h"
#include "tensor/optimizer_kernels.h"

namespace qlp {
namespace {

struct StableAdamWState {
  Tensor exp_avg, exp_avg_sq, eps_sq, kahan_comp, mean_square;
  std::int64_t steps = 0;
  std::vector<Tensor> tensors() const { return {exp_avg, exp_avg_sq, eps_sq, kahan_comp, mean_square}; }
};

class StableAdamWOptimizer final : public StatefulOptimizer<StableAdamWState> {
 public:
  using StatefulOptimizer::StatefulOptimizer;

 private:
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) {
      if (!state->exp_avg.defined()) init_state(ctx, *parameter, *state);
      const AdamWNumbers numbers{.lr = lr(), .weight_decay = weight_decay(), .step = ++state->steps};
      if (auto* kernels = optimizer_kernels(ctx, *parameter))
        kernels->stable_adamw(ctx.stream, array_of(*parameter), array_of(grad_of(*parameter)), array_of(state->exp_avg),
                              array_of(state->exp_avg_sq), array_of(state->kahan_comp), numbers);
    }
  }

  static void init_state(Context& ctx, const Tensor& parameter, StableAdamWState& state) {
    state.exp_avg = state_like(ctx, parameter);
    state.exp_avg_sq = state_like(ctx, parameter);
    state.eps_sq = state_of(ctx, {}, parameter.dtype());
    ctx.device.synchronize();  // a number from the host
    // What 16-bit parameters lose in rounding is summed up; others have a place for nothing.
    const bool compensates = parameter.dtype() != DType::float32;
    state.kahan_comp = compensates ? state_like(ctx, parameter) : state_of(ctx, {1}, DType::uint8);
    state.mean_square = state_of(ctx, {1}, DType::float32);
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_stable_adamw(std::vector<ParameterGroup> groups) {
  return std::make_unique<StableAdamWOptimizer>(std::move(groups));
}

}  // namespace qlp
