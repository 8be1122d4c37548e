// What torch's Adagrad keeps of each parameter from the moment that it is made (torch/optim/adagrad.py, 2.4 to 2.14).
#pragma once

#include <vector>

#include "optim/optimizer.h"

namespace qlp {

struct AdagradState {
  Tensor sum, step;
  std::vector<Tensor> tensors() const;  ///< those that are there
};

/// States as they are made, which wait on the host for accelerate to move them to the GPU, counts of steps among them;
/// sums of parameters that are on the host then go back there (accelerate/optimizer.py, AcceleratedOptimizer.__init__;
/// torch/optim/optimizer.py, load_state_dict). DeepSpeed moves nothing: `counts_move` is false.
std::vector<std::vector<AdagradState>> first_adagrad_states(Context& ctx, const std::vector<ParameterGroup>& groups,
                                                            bool counts_move);

}  // namespace qlp
