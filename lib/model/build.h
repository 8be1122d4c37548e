// The module tree of a model as a job trains it: family, 4-bit layers and adapters in place, no memory taken yet.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "model/adapter_spec.h"
#include "model/model_spec.h"
#include "model/quantization_spec.h"
#include "model/slice.h"
#include "nn/causal_lm.h"

namespace qlp {

/// Everything that shapes the tree.
struct BuildOptions {
  std::optional<QuantizationSpec> quantization;
  std::optional<AdapterSpec> adapter;  ///< none: everything is trained
  AttentionKernel attention = AttentionKernel::sdpa;
  AdapterBehaviour adapter_behaviour;
  ModelBehaviour model_behaviour;
  QuantBehaviour quant_behaviour;
  ModelSlice slice;           ///< what this rank holds of the model
  bool even_routing = false;  ///< Spread::evenly
};

/// Errors: adapter names that match no module.
Result<std::unique_ptr<CausalLm>> build_model(const ModelSpec& spec, const BuildOptions& options);

}  // namespace qlp
