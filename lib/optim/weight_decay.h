// Which parameters the Trainer puts into the optimizer's group with weight decay (transformers trainer.py,
// get_decay_parameter_names).
#pragma once

#include "nn/parameter.h"

namespace qlp {

inline bool has_weight_decay(const Parameter& parameter, bool norms_decay) {
  return (norms_decay || parameter.role != ParamRole::norm) && parameter.role != ParamRole::bias &&
         parameter.role != ParamRole::lora_bias;
}

}  // namespace qlp
