// What the layers do differently by version of the Python libraries; plan/stack_profile fills it in, with sources.
#pragma once

#include <cstdint>
#include <optional>

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
  /// bias="all" trains whatever has the word in its name; else what is called bias (tuners_utils.py; so in 0.18, not in
  /// 0.21).
  bool trains_bare_biases = false;

  friend bool operator==(const AdapterBehaviour&, const AdapterBehaviour&) = default;
};

/// How transformers makes attention masks.
enum class MaskMaker : std::uint8_t {
  triangular,  ///< _update_causal_mask with torch.triu: 4.48's Llama, Qwen2, OLMo 2, Gemma 2
  windowed,    ///< _update_causal_mask with comparisons: 4.48's Mistral and Phi-3
  mapped,      ///< masking_utils.py with torch.vmap: 4.53 to 4.57
  broadcast,   ///< masking_utils.py without: 5
};

/// Where the rotary tables of a pass come from.
enum class RotaryPlace : std::uint8_t {
  decoder,            ///< made once a pass, for all layers
  attention,          ///< made anew in every layer
  attention_buffers,  ///< rows of the tables that every layer keeps
};

struct RotaryBehaviour {
  RotaryPlace place = RotaryPlace::decoder;
  /// Every attention has a rotary module, needed or not (before 4.48, Qwen2-MoE's before 5.0).
  bool in_every_attention = false;
  /// Those modules keep the tables of all positions, in the dtype of the model, as buffers (before 4.41 and 4.42).
  bool keeps_tables = false;
  /// The frequencies of the beginning are a buffer beside those in use (5.0 on).
  bool keeps_original = true;

  friend bool operator==(const RotaryBehaviour&, const RotaryBehaviour&) = default;
};

/// use_liger_kernel; 0.6.2 goes with transformers 4, 0.8.5 with 5.
struct LigerBehaviour {
  bool norm_skips_frozen_gain = true;  ///< no gradient is worked out for the weight of a frozen norm (0.8)
  bool replaces_head_norms = true;     ///< Qwen3's norms of q and k are replaced too (0.8)
  /// The fused loss writes products into one buffer and adds to the weight's gradient in place (0.8); before, each
  /// chunk of logits is a tensor that goes when the next one is there, and each product too.
  bool loss_reuses_buffer = true;

  friend bool operator==(const LigerBehaviour&, const LigerBehaviour&) = default;
};

/// transformers' modelling code
struct ModelBehaviour {
  /// A DynamicCache is filled in training without checkpointing (4.48 to 4.57).
  bool fills_cache = true;
  /// The first keys and values of a layer are copied into it by torch.cat (4.57; 4.48 appends the tensors themselves).
  bool copies_into_cache = true;
  /// What the last layer gave is held, in a tuple, until the decoder is done (4.48).
  bool layers_return_tuples = false;
  /// Attention is a class of its own for each kernel, which gives what it repeats and casts the names of q, k and v
  /// (before 4.48, OLMoE's and Qwen2-MoE's before 5.0; then functions do, whose callers hold on to the originals).
  bool attention_rebinds = false;
  /// k and v are repeated for flash_attention_2 too (Mistral before 4.48, Qwen2-MoE before 5.0).
  bool flash_repeats_heads = false;
  /// k and v keep their own number of heads on the way into the fused attention (4.5x on; before they are repeated).
  bool grouped_attention = true;
  /// q, k and v are made contiguous before the fused attention (sdpa_attention.py of 4.48; before, only with a mask).
  bool contiguous_attention = false;
  AttentionBehaviour attention;
  /// masking_utils.py makes the masks: before, each model did by itself (4.53 on; OLMoE and Qwen2-MoE 5.0 on).
  bool has_masking_utils = true;
  bool broadcasts_masks = true;  ///< MaskMaker::broadcast (5.0 on)
  bool adds_past_length = true;  ///< position ids are arange + the length of the cache, two tensors (5.0 on)
  RotaryBehaviour rotary;
  /// Rotary angles are products of numbers, not of matrices (5; 4.57 runs a batched matrix product).
  bool rotary_by_mul = true;
  /// The tables are scaled after both are made (4.48).
  bool rotary_scales_late = false;
  /// OLMo 2's rotary tables stay in float32, q and k are cast back, and its norms scale before they cast
  /// (modeling_olmo2.py of 4.57; not in 4.48).
  bool olmo2_in_float = true;
  /// Phi-3 joins the rotated part of a head with the rest, even an empty rest (modeling_phi3.py of 4.57; not in 4.48).
  bool phi3_joins_rest = true;
  /// A layer gets the rotary tables of full and of sliding layers, made by a module for each kind (Gemma 3 in 4.57).
  bool hands_on_both_rotaries = false;
  /// Gemma's embedding module scales its own output, ahead of positions and masks (5.0 on).
  bool embedding_scales_itself = true;
  /// hidden_states[:, slice, :] before the head is three slices, each with a gradient of its own; from torch 2.9 on,
  /// a slice of everything is the tensor itself (ATen/TensorIndexing.h, applySlice).
  bool slices_hidden_states = true;
  /// The model returns float32 logits, and drops those of its own dtype (before 4.46; Mistral before 4.48).
  bool returns_float_logits = false;
  /// The loss is the mean over the tokens; nobody counts them (as above).
  bool averages_loss = false;
  /// Labels are padded and shifted instead of the logits (4.50 on).
  bool shifts_labels = true;
  /// The number by which the loss is divided is a Python number, not a tensor (before 4.50).
  bool item_count_on_host = false;
  /// The experts of a mixture run one by one, each on the tokens that are sent to it (before 5.0).
  bool loops_over_experts = false;
  /// Only those to which any token is sent, which the host looks up (so in 4.57, not in 4.48, nor for OLMoE).
  bool looks_up_experts = true;
  std::optional<LigerBehaviour> liger;  ///< set where a job asks for Liger's kernels
};

}  // namespace qlp
