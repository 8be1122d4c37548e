// torch/optim/sgd.py: without momentum everything is in place.
#include <algorithm>
#include <iterator>

#include "optim/optimizer_state.h"
#include "optim/whole_gradient.h"
#include "tensor/compute.h"

namespace qlp {
namespace {

class SgdOptimizer final : public Optimizer {
 public:
  using Optimizer::Optimizer;
  void step(Context& ctx) override {
    const Scoped category(ctx.category, Category::workspace);
    for (const ParameterGroup& group : groups()) {
      cut_gradients(ctx, with_gradient(group));  // for add_(parameter, grad)
      for (const Tensor& parameter : group)
        if (const Tensor& grad = grad_of(parameter); grad.defined())
          compute(ctx, Binary::add, parameter, parameter, grad, -lr());
    }
  }

 private:
  static std::vector<Tensor> with_gradient(const ParameterGroup& group) {
    std::vector<Tensor> parameters;
    std::ranges::copy_if(group, std::back_inserter(parameters), [](const Tensor& p) { return grad_of(p).defined(); });
    return parameters;
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<ParameterGroup> groups) {
  return std::make_unique<SgdOptimizer>(std::move(groups));
}

}  // namespace qlp
