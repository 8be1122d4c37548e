// How the weights of a model arrive on the GPU (transformers modeling_utils.py, core_model_loading.py).
#pragma once

#include <cstdint>

#include "nn/causal_lm.h"
#include "plan/stack_profile.h"
#include "quant/quantize.h"

namespace qlp {

struct LoadOptions {
  DType dtype = DType::bfloat16;
  LoadBehaviour behaviour;
  std::int64_t world_size = 1;
  std::uint64_t capacity = 0;  ///< bytes of the GPU: the warm-up takes no more than 1.2 GiB less
};

/// from_pretrained(..., device_map=GPU): weight by weight, quantized as they come where there is a quantizer.
void load_on_gpu(Context& ctx, CausalLm& model, const LoadOptions& options, FourBitQuantizer* quantizer);

}  // namespace qlp
