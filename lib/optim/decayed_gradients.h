// Gradients that weight decay is added to (torch/optim/sgd.py, rmsprop.py, adagrad.py: device_grads =
// torch._foreach_add(device_grads, device_params, alpha=weight_decay)).
#pragma once

#include <vector>

#include "tensor/context.h"

namespace qlp {

/// A list of new tensors; the gradients themselves where nothing decays.
std::vector<Tensor> decayed_gradients(Context& ctx, const std::vector<Tensor>& parameters, double weight_decay);

}  // namespace qlp
