#include "nn/causal_lm.h"

#include <algorithm>
#include <utility>

#include "autograd/checkpoint.h"
#include "autograd/pointwise.h"
#include "autograd/views.h"
#include "nn/fused_loss.h"
#include "tensor/compute.h"
#include "tensor/factories.h"

namespace qlp {
namespace {

/// The inputs of a layer as its hooks hand them on.
LayerInputs prepared(Context& ctx, Module& layer, LayerInputs inputs) {
  for (Tensor* input : {&inputs.rotary.cos, &inputs.rotary.sin, &inputs.mask, &inputs.sliding_mask})
    *input = layer.further_input(ctx, *input);
  return inputs;
}

}  // namespace

Decoder::Decoder(CausalLmParts& parts) : Module(ModuleKind::decoder, "model") {
  if (parts.embedding) add_child(*parts.embedding);
  for (const auto& layer : parts.layers) add_child(*layer);
  if (parts.norm) add_child(*parts.norm);
  if (parts.rotary) add_child(*parts.rotary);
}

CausalLm::CausalLm(CausalLmParts parts, ModelTraits traits)
    : Module(ModuleKind::model, ""), parts_(std::move(parts)), decoder_(parts_), traits_(traits) {
  add_child(decoder_);
  if (parts_.head) add_child(*parts_.head);
}

Tensor CausalLm::run_layer(Context& ctx, DecoderLayer& layer, const Tensor& hidden, const LayerInputs& inputs,
                           const RunOptions& options) {
  const auto hooked = [&layer, inputs](Context& c, const Tensor& x) {
    const LayerInputs mine = prepared(c, layer, inputs);
    return layer.call(c, x, [&](const Tensor& input) { return layer.forward(c, input, mine); });
  };
  if (options.checkpointing == Checkpointing::none) return hooked(ctx, hidden);
  const auto checkpointed = [&](const Region& region, const Tensor& x) {
    return options.checkpointing == Checkpointing::reentrant ? checkpoint_reentrant(ctx, region, x)
                                                             : checkpoint_nonreentrant(ctx, region, x);
  };
  if (!options.hooks_outside_checkpoint) return checkpointed(hooked, hidden);
  const LayerInputs mine = prepared(ctx, layer, inputs);
  const auto body = [&layer, mine](Context& c, const Tensor& x) { return layer.forward(c, x, mine); };
  return layer.call(ctx, hidden, [&](const Tensor& input) { return checkpointed(body, input); });
}

std::vector<ModuleBuffer> CausalLm::buffers() {
  std::vector<ModuleBuffer> all;
  visit([&](Module& module) {
    for (const ModuleBuffer& buffer : module.own_buffers()) all.push_back(buffer);
  });
  return all;
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

Tensor CausalLm::decode(Context& ctx, const Tensor& ids, const Tensor& num_items, CausalLmOutput& output,
                        const RunOptions& options) {
  const double scaling = traits_.embedding_scale;
  const bool scales_itself = scaling != 0 && options.behaviour.embedding_scales_itself;
  Tensor last_output;
  LayerInputs inputs;
  inputs.num_items = num_items, inputs.labels = options.shifted_labels;
  Tensor embeds = parts_.embedding
                      ? parts_.embedding->forward(ctx, ids, {options.input_requires_grad, scales_itself ? scaling : 0})
                      : ids;
  inputs.positions = options.positions;
  if (!inputs.positions.defined()) {
    inputs.positions = empty(ctx, {1, ids.size(1)}, DType::int64, Op::arange);
    if (options.behaviour.adds_past_length) inputs.positions = empty(ctx, {1, ids.size(1)}, DType::int64, Op::add);
    fill_range(ctx, inputs.positions);
  }
  make_masks(ctx, embeds, inputs);
  if (options.checkpointing == Checkpointing::none && options.behaviour.fills_cache &&
      (traits_.caches_in_training || !ctx.training)) {
    output.cache.resize(parts_.layers.size());
    inputs.cache = &output.cache;
  }
  Tensor hidden = embeds;
  if (parts_.rotary) inputs.rotary = parts_.rotary->forward(ctx, hidden, inputs.positions);
  if (parts_.embedding && scaling != 0 && !scales_itself) hidden = scale(ctx, hidden, scaling);
  for (const auto& layer : parts_.layers) hidden = run_layer(ctx, *layer, hidden, inputs, options);
  if (traits_.holds_last_output) last_output = hidden;
  if (parts_.norm) hidden = parts_.norm->forward(ctx, hidden);
  // Python drops the arguments first, then the other names in the order of the source.
  if (traits_.masks_by_layer_type) {
    inputs.mask.reset(), inputs.sliding_mask.reset(), embeds.reset(), inputs.positions.reset();
  } else if (options.behaviour.adds_past_length) {
    inputs.positions.reset();
  }
  return hidden;
}

CausalLmOutput CausalLm::forward(Context& ctx, const Tensor& ids, const Tensor& labels, const Tensor& num_items,
                                 const RunOptions& options) {
  CausalLmOutput output;
  const Tensor hidden =
      decoder_.call(ctx, ids, [&](const Tensor& input) { return decode(ctx, input, num_items, output, options); });
  if (!parts_.head) {
    output.hidden = hidden;
    return output;
  }
  {
    const Scoped category(ctx.category, Category::logits_and_loss);
    Tensor last = hidden;
    if (options.behaviour.slices_hidden_states)
      for (int dim = 0; dim < 3; ++dim) last = slice(ctx, last, dim, 0, last.size(dim));
    if (options.behaviour.liger) {
      output.loss = liger_causal_lm_loss(ctx, last, further_input(ctx, parts_.head->weight().tensor), labels,
                                         {num_items, options.item_count}, options.behaviour);
      return output;
    }
    output.logits = parts_.head->forward(ctx, last);
    if (options.behaviour.returns_float_logits) output.logits = to(ctx, output.logits, DType::float32);
    if (const double cap = traits_.logit_cap; cap != 0) {
      output.logits = scale(ctx, output.logits, 1 / cap, Op::div);
      output.logits = tanh(ctx, output.logits);
      output.logits = scale(ctx, output.logits, cap);
    }
  }
  const bool shifted = options.shifted_labels.defined();
  output.loss = causal_lm_loss(ctx, output.logits, shifted ? options.shifted_labels : labels,
                               {num_items, options.item_count}, options.behaviour, shifted);
  return output;
}

}  // namespace qlp
