#include "plan/stack_models.h"

namespace qlp {
namespace {

/// A model upcasts its logits and averages the loss by itself: all before loss_function (4.46), Mistral until 4.47.
bool makes_loss(const Version& transformers, Family family) {
  return transformers < (family == Family::mistral ? Version{4, 48, 0} : Version{4, 46, 0});
}

/// A cache is made in training too: not from transformers 4.43 to 4.44 ("and not self.training"), nor from 5.0 on.
bool fills_cache(const Version& transformers) {
  return transformers < Version{4, 43, 0} || (transformers >= Version{4, 45, 0} && transformers < Version{5, 0, 0});
}

AttentionBehaviour attention_of(const Version& torch) {
  return {.flash_rng_on_device = torch >= Version{2, 5, 0},
          .flash_fills_twice = torch >= Version{2, 5, 0},
          .efficient_rng_on_device = torch >= Version{2, 9, 0},
          .efficient_groups_heads = torch >= Version{2, 9, 0},
          .full_slices_record = torch < Version{2, 9, 0},
          .converts_mask_by_where = torch >= Version{2, 5, 0}};
}

/// Where a family's modelling code makes rotary tables, and what it keeps of them. Mistral: tables as buffers until
/// 4.41, made in every layer until 4.47. Llama: made in every layer until 4.42, beside such buffers, of no more use,
/// until 4.40; modules in every layer, of no more use, until 4.47. modeling_mistral.py, modeling_llama.py of 4.39
/// to 4.48.
RotaryBehaviour rotary_of(const Version& transformers, Family family) {
  RotaryBehaviour behaviour{.keeps_original = transformers >= Version{5, 0, 0}};
  behaviour.in_every_attention = family == Family::qwen2_moe && transformers < Version{5, 0, 0};
  if (transformers >= Version{4, 48, 0} || (family != Family::llama && family != Family::mistral)) return behaviour;
  behaviour.in_every_attention = true;
  if (family == Family::llama) {
    if (transformers < Version{4, 43, 0}) behaviour.place = RotaryPlace::attention;
    behaviour.keeps_tables = transformers < Version{4, 41, 0};
    return behaviour;
  }
  behaviour.keeps_tables = transformers < Version{4, 42, 0};
  behaviour.place = behaviour.keeps_tables ? RotaryPlace::attention_buffers : RotaryPlace::attention;
  return behaviour;
}

}  // namespace

/// Release notes of transformers.
Version ModelStack::first_with(Family family) {
  switch (family) {
    case Family::llama:
      return {4, 28, 0};
    case Family::mistral:
      return {4, 34, 0};
    case Family::mixtral:
      return {4, 36, 0};
    case Family::qwen2:
      return {4, 37, 0};
    case Family::phi3:
      return {4, 41, 0};
    case Family::gemma2:
      return {4, 42, 0};
    case Family::olmo2:
      return {4, 47, 0};
    case Family::gemma:
      return {4, 38, 0};
    case Family::cohere:
      return {4, 39, 0};
    case Family::qwen2_moe:
      return {4, 40, 0};
    case Family::granite:
    case Family::olmoe:
      return {4, 45, 0};
    case Family::cohere2:
      return {4, 48, 0};
    case Family::glm:
      return {4, 46, 0};
    case Family::gemma3_text:
      return {4, 50, 0};
    case Family::qwen3:
    case Family::qwen3_moe:
    case Family::glm4:
      return {4, 51, 0};
    case Family::smollm3:
      return {4, 53, 0};
    case Family::gpt_oss:
      return {4, 55, 0};
    case Family::olmo3:
    case Family::ministral:
      return {4, 57, 0};
  }
  return {};
}

LigerBehaviour ModelStack::liger() const {
  const bool recent = transformers_ >= Version{5, 0, 0};
  return {.norm_skips_frozen_gain = recent, .replaces_head_norms = recent, .loss_reuses_buffer = recent};
}

ModelBehaviour ModelStack::behaviour(Family family) const {
  const bool attention_classes = has_attention_classes(family);
  return {.fills_cache = fills_cache(transformers_),
          .copies_into_cache = transformers_ >= Version{4, 56, 0},
          .layers_return_tuples = transformers_ < Version{4, 53, 0},
          .attention_rebinds = attention_classes,
          .flash_repeats_heads = attention_classes && family != Family::llama && family != Family::gemma2 &&
                                 family != Family::olmoe && family != Family::granite,
          .grouped_attention = !attention_classes && transformers_ >= Version{4, 52, 0} && torch_ >= Version{2, 5, 0},
          .contiguous_attention = !attention_classes && transformers_ < Version{4, 53, 0},
          .attention = attention_of(torch_),
          .has_masking_utils = has_masking_utils() && !attention_classes,
          .broadcasts_masks = transformers_ >= Version{5, 0, 0},
          .adds_past_length = transformers_ >= Version{5, 0, 0},
          .rotary = rotary_of(transformers_, family),
          .rotary_by_mul = transformers_ >= Version{5, 0, 0},
          .rotary_scales_late = transformers_ < Version{4, 50, 0},
          .olmo2_in_float = transformers_ >= Version{4, 50, 0},
          .phi3_joins_rest = transformers_ >= Version{4, 50, 0},
          .hands_on_both_rotaries = transformers_ < Version{5, 0, 0},
          .embedding_scales_itself = transformers_ >= Version{5, 0, 0},
          .slices_hidden_states = transformers_ >= Version{4, 45, 0} && torch_ < Version{2, 9, 0},
          .returns_float_logits = makes_loss(transformers_, family),
          .averages_loss = makes_loss(transformers_, family),
          .shifts_labels = transformers_ >= Version{4, 50, 0},
          .loops_over_experts = loops_over_experts(),
          .looks_up_experts = transformers_ >= Version{4, 53, 0} && family != Family::olmoe};
}

}  // namespace qlp
