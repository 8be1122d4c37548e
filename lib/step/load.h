// How the weights of a model arrive, on the GPU or in host memory (transformers modeling_utils.py,
// core_model_loading.py).
#pragma once

#include <cstdint>

#include "nn/causal_lm.h"
#include "plan/loading.h"
#include "plan/stack_profile.h"
#include "quant/quantize.h"

namespace qlp {

struct LoadOptions {
  DType dtype = DType::bfloat16;
  LoadPath path = LoadPath::gpu;
  LoadBehaviour behaviour;
  std::int64_t world_size = 1;
  std::uint64_t capacity = 0;  ///< bytes of the GPU: the warm-up takes no more than 1.2 GiB less
};

/// from_pretrained: weight by weight, quantized as they come where there is a quantizer.
void load(Context& ctx, CausalLm& model, const LoadOptions& options, FourBitQuantizer* quantizer);

}  // namespace qlp
