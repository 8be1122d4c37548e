#include "nn/causal_lm.h"

#include <algorithm>
#include <utility>

#include "autograd/checkpoint.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "tensor/factories.h"

namespace qlp {

CausalLm::CausalLm(CausalLmParts parts, ModelTraits traits)
    : Module(ModuleKind::model, ""), parts_(std::move(parts)), traits_(traits) {
  add_child(*parts_.embedding);
  for (const auto& layer : parts_.layers) add_child(*layer);
  add_child(*parts_.norm), add_child(*parts_.rotary), add_child(*parts_.head);
}

Tensor CausalLm::run_layer(Context& ctx, DecoderLayer& layer, const Tensor& hidden, const LayerInputs& inputs,
                           const RunOptions& options) {
  const auto body = [&layer, inputs](Context& c, const Tensor& x) { return layer.forward(c, x, inputs); };
  const auto hooked = [&layer, inputs](Context& c, const Tensor& x) {
    return layer.call(c, x, [&](const Tensor& prepared) { return layer.forward(c, prepared, inputs); });
  };
  if (options.checkpointing == Checkpointing::none) return hooked(ctx, hidden);
  const auto checkpointed = [&](const Region& region, const Tensor& x) {
    return options.checkpointing == Checkpointing::reentrant ? checkpoint_reentrant(ctx, region, x)
                                                              : checkpoint_nonreentrant(ctx, region, x);
  };
  if (options.hooks_outside_checkpoint)
    return layer.call(ctx, hidden, [&](const Tensor& prepared) { return checkpointed(body, prepared); });
  return checkpointed(hooked, hidden);
}

void CausalLm::make_masks(Context& ctx, const Tensor& hidden, LayerInputs& inputs) const {
  if (traits_.kernel == AttentionKernel::flash_attention_2) return;  // the kernel knows what to leave out
  const bool eager = traits_.kernel == AttentionKernel::eager;
  const std::int64_t window = traits_.sliding_window;
  MaskRequest request{.batch = hidden.size(0), .rows = hidden.size(1), .additive = eager, .dtype = hidden.dtype()};
  const bool window_cuts = window && request.rows >= window;
  if (traits_.mask_maker == MaskMaker::triangular || traits_.mask_maker == MaskMaker::windowed) {
    const bool windowed = traits_.mask_maker == MaskMaker::windowed && window;
    inputs.narrows_mask = traits_.layers_narrow_masks;
    if (!eager && !inputs.narrows_mask && !(windowed && window_cuts)) return;
    request.extra_column = !inputs.narrows_mask;
    if (windowed) request.window = window;
    inputs.mask = inputs.sliding_mask = make_causal_mask(ctx, request, traits_.mask_maker);
    return;
  }
  const auto slides = [](const auto& layer) { return layer->attention().slides(); };
  if (eager && !std::all_of(parts_.layers.begin(), parts_.layers.end(), slides))
    inputs.mask = make_causal_mask(ctx, request, traits_.mask_maker);
  if ((eager || window_cuts) && std::any_of(parts_.layers.begin(), parts_.layers.end(), slides)) {
    request.window = window;
    inputs.sliding_mask = make_causal_mask(ctx, request, traits_.mask_maker);
  }
}

Tensor CausalLm::decode(Context& ctx, const Tensor& ids, CausalLmOutput& output, const RunOptions& options) {
  const bool scales_itself = traits_.scales_embedding && options.behaviour.embedding_scales_itself;
  LayerInputs inputs;
  Tensor embeds = parts_.embedding->forward(ctx, ids, {options.input_requires_grad, scales_itself});
  inputs.positions = empty(ctx, {1, ids.size(1)}, DType::int64, Op::arange);
  if (options.behaviour.adds_past_length) inputs.positions = empty(ctx, {1, ids.size(1)}, DType::int64, Op::add);
  make_masks(ctx, embeds, inputs);
  if (options.checkpointing == Checkpointing::none && options.behaviour.fills_cache && traits_.caches_in_training) {
    output.cache.resize(parts_.layers.size());
    inputs.cache = &output.cache;
  }
  Tensor hidden = embeds;
  inputs.rotary = parts_.rotary->forward(ctx, hidden, inputs.positions);
  if (traits_.scales_embedding && !scales_itself) hidden = scale(ctx, hidden);
  for (const auto& layer : parts_.layers) hidden = run_layer(ctx, *layer, hidden, inputs, options);
  hidden = parts_.norm->forward(ctx, hidden);
  return hidden;
}

CausalLmOutput CausalLm::forward(Context& ctx, const Tensor& ids, const Tensor& labels, const Tensor& num_items,
                                 const RunOptions& options) {
  CausalLmOutput output;
  const Tensor hidden = decode(ctx, ids, output, options);
  {
    const Scoped category(ctx.category, Category::logits_and_loss);
    Tensor last = hidden;
    if (options.behaviour.slices_hidden_states)
      for (int dim = 0; dim < 3; ++dim) last = slice(ctx, last, dim, last.size(dim));
    output.logits = parts_.head->forward(ctx, last);
    if (traits_.caps_logits) {
      output.logits = scale(ctx, output.logits, Op::div);
      output.logits = tanh(ctx, output.logits);
      output.logits = scale(ctx, output.logits);
    }
  }
  output.loss = causal_lm_loss(ctx, output.logits, labels, num_items, options.behaviour);
  return output;
}

}  // namespace qlp
