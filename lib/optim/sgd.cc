// torch/optim/sgd.py: without momentum everything is in place.
#include "optim/optimizer_state.h"
#include "tensor/compute.h"

namespace qlp {
namespace {

class SgdOptimizer final : public Optimizer {
 public:
  using Optimizer::Optimizer;
  void step(Context& ctx) override {
    for (const ParameterGroup& group : groups())
      for (const Tensor& parameter : group)
        if (const Tensor& grad = grad_of(parameter); grad.defined())
          compute(ctx, Binary::add, parameter, parameter, grad, -lr());
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<ParameterGroup> groups) {
  return std::make_unique<SgdOptimizer>(std::move(groups));
}

}  // namespace qlp
