// deepspeed/ops/lion/fused_lion.py, cpu_lion.py, 0.18.3.
#include "optim/implementations.h"
#include "optim/optimizer_state.h"
#include "tensor/optimizer_kernels.h"

namespace qlp {
namespace {

struct LionState {
  Tensor exp_avg;
  std::int64_t steps = 0;
  std::vector<Tensor> tensors() const { return {exp_avg}; }
};

class LionOptimizer final : public StatefulOptimizer<LionState> {
 public:
  using StatefulOptimizer::StatefulOptimizer;
  StatesAlike states_alike(DType parameter) const override { return {1, parameter}; }

 private:
  /// One kernel for all, in place.
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    for (const auto& [parameter, state] : entries) {
      if (!state->exp_avg.defined()) state->exp_avg = state_like(ctx, *parameter);
      ++state->steps;
      if (OptimizerKernels* kernels = optimizer_kernels(ctx, *parameter))
        kernels->update(ctx.stream, UpdateRule::lion, array_of(*parameter), array_of(grad_of(*parameter)),
                        {{.values = array_of(state->exp_avg), .codes = {}}},
                        {.lr = lr(), .weight_decay = weight_decay(), .step = state->steps});
    }
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_lion(std::vector<ParameterGroup> groups) {
  return std::make_unique<LionOptimizer>(std::move(groups));
}

}  // namespace qlp
