// What the layers do differently by version of the Python libraries; plan/stack_profile fills it in, with sources.
#pragma once

#include <cstdint>

#include "autograd/attention_behaviour.h"
#include "quant/quant_behaviour.h"

namespace qlp {

/// peft.tuners.lora: what DoRA does by version; plain LoRA has not changed from 0.13 to 0.21.
struct AdapterBehaviour {
  /// Without dropout the result of the base layer is used again instead of a product with the whole weight
  /// (dora.py, 0.14 on; huggingface/peft 2122).
  bool dora_reuses_base_result = true;
  /// A class of its own runs DoRA (LoraVariant, 0.16 on): the layer still holds its input while dropout's result is
  /// used, and Linear4bit casts the sum, not the update, where autocast is off (bnb.py).
  bool dora_is_variant = true;
  /// The identity matrix has the dtype of the adapter and goes before the norm is worked out; the product with it is
  /// cast. Before, both are in the dtype of the input (dora.py, 0.19 on; huggingface/peft 2661).
  bool dora_identity_in_adapter_dtype = true;

  friend bool operator==(const AdapterBehaviour&, const AdapterBehaviour&) = default;
};

/// How transformers makes attention masks.
enum class MaskMaker : std::uint8_t {
  triangular,  ///< _update_causal_mask with torch.triu: 4.48's Llama, Qwen2, OLMo 2, Gemma 2
  windowed,    ///< _update_causal_mask with comparisons: 4.48's Mistral and Phi-3
  mapped,      ///< masking_utils.py with torch.vmap: 4.53 to 4.57
  broadcast,   ///< masking_utils.py without: 5
};

/// transformers' modelling code
struct ModelBehaviour {
  /// A DynamicCache is filled in training without checkpointing: k and v are copied by torch.cat (4.48 to 4.57).
  bool fills_cache = true;
  /// k and v keep their own number of heads on the way into the fused attention (4.5x on; before they are repeated).
  bool grouped_attention = true;
  /// q, k and v are made contiguous before the fused attention (sdpa_attention.py of 4.48).
  bool contiguous_attention = false;
  AttentionBehaviour attention;
  /// masking_utils.py makes the masks: before, each model did by itself (4.53 on).
  bool has_masking_utils = true;
  bool broadcasts_masks = true;   ///< MaskMaker::broadcast (5.0 on)
  bool adds_past_length = true;   ///< position ids are arange + the length of the cache, two tensors (5.0 on)
  /// Rotary angles are products of numbers, not of matrices (5; 4.57 runs a batched matrix product).
  bool rotary_by_mul = true;
  /// The tables are scaled after both are made (4.48).
  bool rotary_scales_late = false;
  /// OLMo 2's tables stay in float32, and q and k are cast back (modeling_olmo2.py of 4.57; not in 4.48).
  bool olmo2_float_tables = true;
  /// Phi-3 joins the rotated part of a head with the rest, even an empty rest (modeling_phi3.py of 4.57; not in 4.48).
  bool phi3_joins_rest = true;
  /// Gemma's embedding module scales its own output, ahead of positions and masks (5.0 on).
  bool embedding_scales_itself = true;
  /// hidden_states[:, slice, :] before the head is three slices, each with a gradient of its own; from torch 2.9 on,
  /// a slice of everything is the tensor itself (ATen/TensorIndexing.h, applySlice).
  bool slices_hidden_states = true;
  /// Labels are padded and shifted instead of the logits (4.50 on).
  bool shifts_labels = true;
  /// The number by which the loss is divided is a Python number, not a tensor (before 4.50).
  bool item_count_on_host = false;
};

}  // namespace qlp
