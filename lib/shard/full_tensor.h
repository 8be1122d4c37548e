// DTensor.full_tensor() of what ranks share by layers or experts (torch/distributed/tensor/_redistribute.py and
// placement_types.py, 2.14).
#pragma once

#include "nn/parameter.h"
#include "tensor/context.h"

namespace qlp {

/// `part`: of the parameter on its mesh, as this rank has it, or some of its rows on the ranks of another mesh.
Tensor full_tensor(Context& ctx, const Parameter& parameter, const Tensor& part);

}  // namespace qlp
