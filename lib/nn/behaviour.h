// What the layers do differently by version of the Python libraries; plan/stack_profile fills it in, with sources.
#pragma once

#include "autograd/attention_behaviour.h"
#include "quant/quant_behaviour.h"

namespace qlp {

/// peft.tuners.lora
struct AdapterBehaviour {
  /// lora.Linear casts its input to the adapter's dtype even where autocast would do it (peft 0.13 to 0.21).
  bool casts_input_under_autocast = true;
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
  /// hidden_states[:, slice, :] before the head is three slices, each with a gradient of its own.
  bool slices_hidden_states = true;
  /// Labels are padded and shifted instead of the logits (4.50 on).
  bool shifts_labels = true;
  /// The number by which the loss is divided is a Python number, not a tensor (before 4.50).
  bool item_count_on_host = false;
};

}  // namespace qlp
