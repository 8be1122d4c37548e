// How the weights of a model arrive, on the GPU or in host memory (transformers modeling_utils.py,
// core_model_loading.py).
#pragma once

#include <cstdint>

#include "nn/causal_lm.h"
#include "plan/load_behaviour.h"
#include "plan/loading.h"
#include "quant/quantize.h"
#include "shard/parameter_cutter.h"
#include "shard/rows.h"

namespace qlp {

struct LoadOptions {
  DType dtype = DType::bfloat16;
  LoadPath path = LoadPath::gpu;
  LoadBehaviour behaviour;
  std::int64_t world_size = 1;
  DType checkpoint_dtype = DType::bfloat16;  ///< of the files
  /// Under LoadPath::host and through_gpu the weights of rank 0 stay in host memory; the other ranks of a node then
  /// hold them nowhere, because rank 0 sends them what they need.
  bool keeps_on_host = true;
  RankShare cut, experts_cut;    ///< under LoadPath::sharded: of all rows, and of those of experts that ranks share
  std::uint64_t capacity = 0;    ///< bytes of the GPU: the warm-up takes no more than 1.2 GiB less
  bool mxfp4_experts = false;    ///< in the files, and dequantized on the GPU
  bool stacked_experts = false;  ///< in the files, where others have a matrix for each expert and projection
  bool eight_bit = false;        ///< quantized weights are, which go to the host and back
};

/// from_pretrained: weight by weight, quantized as they come where there is a quantizer.
/// `cutter` is asked where parameters are cut as they come.
void load(Context& ctx, CausalLm& model, const LoadOptions& options, WeightQuantizer* quantizer,
          ParameterCutter* cutter);

}  // namespace qlp
