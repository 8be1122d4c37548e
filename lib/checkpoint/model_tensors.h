// The tensors of a model that is not quantized, under the names that its checkpoints have.
#pragma once

#include <vector>

#include "base/result.h"
#include "checkpoint/stored_tensor.h"
#include "model/model_spec.h"

namespace qlp {

/// From the module tree, in its order; a tied head is not stored. The experts of a mixture are stored one by one, as
/// on the hub (transformers 5 joins them when it loads). All in `dtype`.
std::vector<StoredTensor> model_tensors(const ModelSpec& spec, DType dtype);

}  // namespace qlp
