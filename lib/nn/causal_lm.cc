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
  for (Tensor* input :
       {&inputs.rotary.cos, &inputs.rotary.sin, &inputs.other_rotary.cos, &inputs.other_rotary.sin, &inputs.mask})
    *input = layer.further_input(ctx, *input);
  return inputs;
}

}  // namespace

Decoder::Decoder(CausalLmParts& parts) : Module(ModuleKind::decoder, "model") {
  if (parts.embedding) add_child(*parts.embedding);
  for (const auto& layer : parts.layers) add_child(*layer);
  if (parts.norm) add_child(*parts.norm);
  if (parts.rotary) add_child(*parts.rotary);
  if (parts.sliding_rotary) add_child(*parts.sliding_rotary);
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

void CausalLm::make_masks(Context& ctx, const Tensor& hidden, ByLayerType& inputs) const {
  if (traits_.kernel == AttentionKernel::flash_attention_2) return;  // the kernel knows what to leave out
  const bool eager = traits_.kernel == AttentionKernel::eager;
  std::optional<std::int64_t> window;
  if (traits_.sliding_window) window = traits_.sliding_window;
  MaskRequest request{.batch = hidden.size(0), .rows = hidden.size(1), .additive = eager, .dtype = hidden.dtype()};
  if (traits_.mask_maker == MaskMaker::triangular || traits_.mask_maker == MaskMaker::windowed) {
    const bool windowed = traits_.mask_maker == MaskMaker::windowed && window;
    const bool narrows = traits_.layers_narrow_masks;
    inputs.full.narrows_mask = inputs.sliding.narrows_mask = narrows;
    if (!eager && !narrows && !(windowed && request.rows >= *window)) return;
    request.extra_column = !narrows;
    if (windowed) request.window = window;
    inputs.full.mask = inputs.sliding.mask = make_causal_mask(ctx, request, traits_.mask_maker);
    return;
  }
  if (traits_.masks_empty_window && !window) window = 0;
  const bool window_cuts = window && request.rows >= *window;
  const auto slides = [](const auto& layer) { return layer->attention().slides(); };
  const bool every = traits_.makes_every_mask;
  if (eager && (every || !std::all_of(parts_.layers.begin(), parts_.layers.end(), slides)))
    inputs.full.mask = make_causal_mask(ctx, request, traits_.mask_maker);
  if ((eager || window_cuts) && window && (every || std::any_of(parts_.layers.begin(), parts_.layers.end(), slides))) {
    request.window = window;
    inputs.sliding.mask = make_causal_mask(ctx, request, traits_.mask_maker);
  }
}

void CausalLm::make_rotaries(Context& ctx, const Tensor& hidden, const Tensor& positions, ByLayerType& inputs) const {
  if (parts_.rotary) inputs.full.rotary = inputs.sliding.rotary = parts_.rotary->forward(ctx, hidden, positions);
  if (!parts_.sliding_rotary) return;
  inputs.sliding.rotary = parts_.sliding_rotary->forward(ctx, hidden, positions);
  if (!traits_.hands_on_both_rotaries) return;
  inputs.full.other_rotary = inputs.sliding.rotary;
  inputs.sliding.other_rotary = inputs.full.rotary;
}

Tensor CausalLm::decode(Context& ctx, const Tensor& ids, const Tensor& num_items, CausalLmOutput& output,
                        const RunOptions& options) {
  const auto scales = [&](EmbeddingScale where) { return parts_.embedding && traits_.scales_embedding == where; };
  const double scaling = traits_.embedding_scale;
  Tensor last_output;
  ByLayerType inputs;
  const double by_module = scales(EmbeddingScale::by_module) ? scaling : 0;
  Tensor embeds =
      parts_.embedding ? parts_.embedding->forward(ctx, ids, {options.input_requires_grad, by_module}) : ids;
  if (scales(EmbeddingScale::at_once)) embeds = scale(ctx, embeds, scaling);
  Tensor positions = options.positions, cache_position;
  const auto counted = [&](Op op) { return empty(ctx, {1, ids.size(1)}, DType::int64, op); };
  if (!positions.defined()) {
    positions = counted(Op::arange);
    if (options.behaviour.adds_past_length) positions = counted(Op::add);
    fill_range(ctx, positions);
  } else if (!options.behaviour.adds_past_length) {
    cache_position = counted(Op::arange);
  }
  make_masks(ctx, embeds, inputs);
  const bool caches = options.checkpointing == Checkpointing::none && options.behaviour.fills_cache &&
                      (traits_.caches_in_training || !ctx.training);
  // By a layer's place in the whole model, of which a stage has a part.
  if (caches && !parts_.layers.empty()) output.cache.resize(parts_.layers.back()->attention().layer() + 1);
  for (LayerInputs* kind : {&inputs.full, &inputs.sliding}) {
    kind->num_items = num_items, kind->labels = options.shifted_labels, kind->positions = positions;
    kind->cache_position = cache_position;
    kind->cache = caches ? &output.cache : nullptr;
  }
  Tensor hidden = embeds;
  make_rotaries(ctx, hidden, positions, inputs);
  if (scales(EmbeddingScale::after_rotary)) hidden = scale(ctx, hidden, scaling);
  for (const auto& layer : parts_.layers)
    hidden = run_layer(ctx, *layer, hidden, layer->attention().slides() ? inputs.sliding : inputs.full, options);
  if (traits_.holds_last_output) last_output = hidden;
  if (parts_.norm) hidden = parts_.norm->forward(ctx, hidden);
  // Python drops the arguments first, then the other names in the order of the source.
  if (traits_.masks_by_layer_type) {
    inputs.full.mask.reset(), inputs.sliding.mask.reset(), embeds.reset();
  }
  if (traits_.masks_by_layer_type || options.behaviour.adds_past_length)
    inputs.full.positions.reset(), inputs.sliding.positions.reset(), positions.reset();
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
    if (traits_.logit_scale != 0) output.logits = scale(ctx, output.logits, traits_.logit_scale);
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
