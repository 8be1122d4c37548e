// A linear layer with an adapter on a dry device, as test cases need it.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "autograd/autocast.h"
#include "nn/lora_linear.h"
#include "quant/quantize.h"
#include "quant/recorder.h"

namespace qlp::test {

/// In each run of frees the order does not matter, and differs.
inline Events in_order(Events events) {
  for (auto at = events.begin(); at != events.end();) {
    const auto from = std::find_if(at, events.end(), [](std::int64_t bytes) { return bytes < 0; });
    at = std::find_if(from, events.end(), [](std::int64_t bytes) { return bytes > 0; });
    std::sort(from, at);
  }
  return events;
}

struct AdaptedLayer {
  DryDevice dry;
  std::optional<FourBitQuantizer> quantizer;
  std::unique_ptr<LoraLinear> layer;

  /// A bf16 weight [out, in], in 4 bit with double quant if there is a storage dtype for it; r = 8.
  AdaptedLayer(const LoraOptions& options, const AdapterBehaviour& behaviour, DType adapter,
               std::optional<DType> storage = {}, const Shape& shape = {2048, 2048}) {
    std::unique_ptr<LinearModule> base;
    const std::int64_t out = shape[0], in = shape[1];
    if (storage) {
      base = std::make_unique<Linear4bit>("q_proj.base_layer", in, out, false,
                                          FourBitCompute{DType::bfloat16, QuantBehaviour{}});
      quantizer.emplace(FourBitFormat{true, *storage}, QuantBehaviour{});
      QuantizedWeight quantized = quantizer->quantize(dry.ctx, dry.tensor(shape, DType::bfloat16));
      base->weight().tensor = std::move(quantized.packed);
      base->weight().quant = std::make_unique<QuantState>(std::move(quantized.state));
    } else {
      base = std::make_unique<Linear>("q_proj.base_layer", in, out, false, ParamRole::base_weight);
      base->weight().tensor = dry.tensor(shape, DType::bfloat16);
    }
    layer = std::make_unique<LoraLinear>("q_proj", std::move(base), options, behaviour);
    for (Parameter* parameter : layer->parameters())
      if (parameter->role != ParamRole::base_weight) {
        parameter->tensor = dry.tensor(parameter->shape, adapter);
        set_requires_grad(parameter->tensor, true);
      }
    dry.recorder.take();
  }

  /// What one call on x [1, 128, in] of bf16 takes and gives back while its result and the casts of weights stay.
  Events forward(bool autocast, bool grad_enabled) {
    const Tensor x = dry.tensor({1, 128, layer->weight().shape[1]}, DType::bfloat16);
    const Scoped grad_mode(dry.ctx.grad_enabled, grad_enabled);
    const AutocastRegion region(dry.ctx, autocast);
    const Tensor out = layer->forward(dry.ctx, x);
    return in_order(dry.recorder.take());
  }
};

}  // namespace qlp::test
