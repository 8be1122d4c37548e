// torch/optim/sgd.py: without momentum everything is in place.
#include "optim/optimizer_state.h"

namespace qlp {
namespace {

class SgdOptimizer final : public Optimizer {
 public:
  using Optimizer::Optimizer;
  void step(Context&) override {}
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<ParameterGroup> groups) {
  return std::make_unique<SgdOptimizer>(std::move(groups));
}

}  // namespace qlp
