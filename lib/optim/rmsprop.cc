// torch/optim/rmsprop.py, torch 2.4 to 2.14.
#include "optim/optimizer_state.h"

namespace qlp {
namespace {

struct RmsPropState {
  Tensor square_avg;
};

class RmsPropOptimizer final : public StatefulOptimizer<RmsPropState> {
 public:
  using StatefulOptimizer::StatefulOptimizer;

 private:
  /// _multi_tensor_rmsprop: by dtype, the list of sqrt(square_avg), beside that of the dtype before.
  void step_group(Context& ctx, const std::vector<Entry>& entries) override {
    std::vector<Tensor> squares;
    for (const auto& [parameter, state] : entries) {
      if (!state->square_avg.defined()) state->square_avg = state_like(ctx, *parameter);
      squares.push_back(state->square_avg);
    }
    std::vector<Tensor> avg;
    for (const auto& list : by_dtype(squares)) {
      std::vector<Tensor> next;
      for (const Tensor& square : list) next.push_back(empty_like(ctx, square, Op::foreach_sqrt));
      avg = std::move(next);
    }
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_rmsprop(std::vector<ParameterGroup> groups) {
  return std::make_unique<RmsPropOptimizer>(std::move(groups));
}

}  // namespace qlp
