// The expert of a mixture that every token goes to, beside those that its router picks (Qwen2-MoE).
#pragma once

#include <memory>

#include "nn/linear.h"
#include "nn/mlp.h"

namespace qlp {

/// Neither, where none is shared.
struct SharedExpert {
  std::unique_ptr<GatedMlp> mlp;
  std::unique_ptr<LinearModule> gate;  ///< gives a number for each token
};

/// F.sigmoid(gate(hidden)) * output, of hidden and output [T, H].
Tensor weigh_shared(Context& ctx, LinearModule& gate, const Tensor& hidden, const Tensor& output);

}  // namespace qlp
