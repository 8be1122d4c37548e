// torch/optim/sgd.py, _multi_tensor_sgd: without momentum everything is in place, but for gradients that weight decay
// is added to.
#include <algorithm>
#include <iterator>

#include "optim/decayed_gradients.h"
#include "optim/implementations.h"
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
    for (std::size_t i = 0; i < groups().size(); ++i) {
      const std::vector<Tensor> parameters = with_gradient(groups()[i]);
      cut_gradients(ctx, parameters);  // for add_(parameter, grad)
      for (const auto& list : by_dtype(parameters)) update(ctx, list, weight_decay(i));
    }
  }

 private:
  void update(Context& ctx, const std::vector<Tensor>& parameters, double decay) const {
    const std::vector<Tensor> decayed = decayed_gradients(ctx, parameters, decay);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      compute(ctx, Binary::add, parameters[i], parameters[i], decayed[i], -lr());
  }
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
