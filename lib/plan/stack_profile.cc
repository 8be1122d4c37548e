#include "plan/stack_profile.h"

namespace qlp {

/// Release notes of transformers.
Version StackProfile::first_with(Family family) {
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

QuantBehaviour StackProfile::quant() const {
  const Version& bnb = v_.bitsandbytes;
  return {.fused_gemm = bnb >= Version{0, 50, 0},
          .own_statistics = bnb >= Version{0, 46, 0},
          .honours_compute_dtype = bnb >= Version{0, 48, 0},
          .bias_in_compute_dtype = bnb >= Version{0, 50, 0},
          .keeps_input = bnb < Version{0, 43, 2}};
}

AdapterBehaviour StackProfile::adapter() const {
  const Version& peft = v_.peft;
  return {.dora_reuses_base_result = peft >= Version{0, 14, 0},
          .dora_is_variant = peft >= Version{0, 16, 0},
          .dora_identity_in_adapter_dtype = peft >= Version{0, 19, 0},
          .trains_bare_biases = peft < Version{0, 19, 0}};
}

LigerBehaviour StackProfile::liger() const {
  const bool recent = v_.transformers >= Version{5, 0, 0};
  return {.norm_skips_frozen_gain = recent, .replaces_head_norms = recent, .loss_reuses_buffer = recent};
}

AttentionBehaviour StackProfile::attention() const {
  const Version& torch = v_.torch;
  return {.flash_rng_on_device = torch >= Version{2, 5, 0},
          .flash_fills_twice = torch >= Version{2, 5, 0},
          .efficient_rng_on_device = torch >= Version{2, 9, 0},
          .efficient_groups_heads = torch >= Version{2, 9, 0},
          .full_slices_record = torch < Version{2, 9, 0},
          .converts_mask_by_where = torch >= Version{2, 5, 0}};
}

RotaryBehaviour StackProfile::rotary(Family family) const {
  const Version& transformers = v_.transformers;
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

ModelBehaviour StackProfile::model(Family family) const {
  const Version& transformers = v_.transformers;
  const bool kept_classes = family == Family::olmoe || family == Family::qwen2_moe;
  const bool attention_classes = kept_classes ? transformers < Version{5, 0, 0} : !has_attention_functions();
  return {.fills_cache = fills_cache(),
          .copies_into_cache = transformers >= Version{4, 56, 0},
          .layers_return_tuples = transformers < Version{4, 53, 0},
          .attention_rebinds = attention_classes,
          .flash_repeats_heads = attention_classes && family != Family::llama && family != Family::gemma2 &&
                                 family != Family::olmoe && family != Family::granite,
          .grouped_attention = !attention_classes && transformers >= Version{4, 52, 0} && v_.torch >= Version{2, 5, 0},
          .contiguous_attention = !attention_classes && transformers < Version{4, 53, 0},
          .attention = attention(),
          .has_masking_utils = has_masking_utils() && !attention_classes,
          .broadcasts_masks = transformers >= Version{5, 0, 0},
          .adds_past_length = transformers >= Version{5, 0, 0},
          .rotary = rotary(family),
          .rotary_by_mul = transformers >= Version{5, 0, 0},
          .rotary_scales_late = transformers < Version{4, 50, 0},
          .olmo2_in_float = transformers >= Version{4, 50, 0},
          .phi3_joins_rest = transformers >= Version{4, 50, 0},
          .hands_on_both_rotaries = transformers < Version{5, 0, 0},
          .embedding_scales_itself = transformers >= Version{5, 0, 0},
          .slices_hidden_states = slices_hidden_states(),
          .returns_float_logits = model_makes_loss(family),
          .averages_loss = model_makes_loss(family),
          .shifts_labels = transformers >= Version{4, 50, 0},
          .item_count_on_host = !counts_items_on_device(),
          .loops_over_experts = loops_over_experts(),
          .looks_up_experts = transformers >= Version{4, 53, 0} && family != Family::olmoe};
}

Fsdp2Behaviour StackProfile::fully_shard() const {
  const Version& torch = v_.torch;
  return {.root_obeys_reshard = torch >= Version{2, 8, 0},
          .copies_on_one_rank = torch >= Version{2, 9, 0},
          .keeps_recomputed = torch >= Version{2, 10, 0},
          .drops_reduced_early = torch >= Version{2, 12, 0},
          .casts_everywhere = torch >= Version{2, 14, 0},
          .reduces_norms_first = torch >= Version{2, 14, 0}};
}

Fsdp2Upcast StackProfile::fsdp2_upcast() const {
  const Version& accelerate = v_.accelerate;
  return accelerate >= Version{1, 14, 0}   ? Fsdp2Upcast::trained_parameters
         : accelerate >= Version{1, 13, 0} ? Fsdp2Upcast::lost
                                           : Fsdp2Upcast::whole_model;
}

LoadBehaviour StackProfile::load() const {
  return {.loader = v_.transformers >= Version{5, 0, 0}    ? Loader::by_name
                    : v_.transformers >= Version{4, 52, 0} ? Loader::by_file
                                                           : Loader::by_tensor,
          .adapters_in_compute_dtype = v_.peft >= Version{0, 19, 0},
          .casts_adapters = v_.peft >= Version{0, 12, 0},
          .kbit_empties_cache = v_.peft >= Version{0, 20, 0}};
}

/// Blocks of 256: bitsandbytes 0.44 (optim/optimizer.py). 32 bits for embeddings: until transformers 4.52 the Trainer
/// asked for a class that it no longer made (huggingface/transformers 37331).
namespace {

/// That a wheel of PyPI requires (nvidia-cusolver-cu12 and -cu13 in its metadata).
CuSolver cusolver_of(const Version& torch) {
  return torch < Version{2, 5, 0}   ? CuSolver::v11_4_5
         : torch < Version{2, 7, 0} ? CuSolver::v11_6_1
         : torch < Version{2, 8, 0} ? CuSolver::v11_7_1
                                    : CuSolver::v11_7_3;
}

}  // namespace

OptimizerBehaviour StackProfile::optimizer() const {
  return {.bnb_blocksize = v_.bitsandbytes >= Version{0, 44, 0} ? 256 : 2048,
          .bnb_spares_embeddings = v_.transformers >= Version{4, 52, 0},
          .bnb_galore_norm = v_.bitsandbytes >= Version{0, 50, 0},
          .cusolver = cusolver_of(v_.torch)};
}

}  // namespace qlp
