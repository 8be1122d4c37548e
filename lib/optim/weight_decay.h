// Which parameters the Trainer puts into the optimizer's group with weight decay (transformers trainer.py,
// get_decay_parameter_names).
#pragma once

#include "nn/parameter.h"

namespace qlp {

inline bool has_weight_decay(const Parameter& parameter, bool norms_decay) {
  const bool copied_norm = parameter.role == ParamRole::modules_to_save && parameter.shape.rank() == 1;
  const bool of_norm = parameter.role == ParamRole::norm || copied_norm;
  return (norms_decay || !of_norm) && parameter.role != ParamRole::bias && parameter.role != ParamRole::lora_bias;
}

}  // namespace qlp
