// How the layers of each family are put together, as data: what tells one family from another when a model is built.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/model_spec.h"
#include "nn/attention.h"
#include "nn/embedding.h"
#include "nn/liger.h"
#include "nn/norm.h"

namespace qlp {

/// What the norms of a block are called; those that a block does not have have no name.
struct NormNames {
  std::string_view before_attention, after_attention, before_mlp, after_mlp;

  constexpr std::array<std::string_view, 4> all() const {
    return {before_attention, after_attention, before_mlp, after_mlp};
  }
  constexpr std::int64_t count() const {
    std::int64_t named = 0;
    for (const std::string_view name : all()) named += !name.empty();
    return named;
  }
};

/// What the modules of a mixture were called before their experts became one parameter in transformers 5, and still are
/// on the Hub (transformers 5.24, conversion_mapping.py).
struct ExpertNames {
  std::string_view block;  ///< the mixture itself; in transformers 5 "mlp"
  std::string_view gate, up, down;
  bool known_to_peft = true;  ///< as targets (transformers_weight_conversion.py, 0.21: not of Qwen2-MoE)
};

/// What a family's ...Model does around its layers.
struct DecoderHabits {
  bool caches_in_training = true;    ///< a DynamicCache, before 5.0
  bool returns_tuples = false;       ///< what the last layer gave is held in a tuple, before 5.0
  bool masks_by_layer_type = false;  ///< a dict of masks, and one of what they are made from, hold their tensors
  bool makes_every_mask = false;     ///< both kinds, whatever kinds of layers there are
  bool windowed_masks = false;       ///< MaskMaker::windowed before masking_utils.py
  bool masks_empty_window = false;   ///< sliding masks are made where there is no window, too (5.0 on)
};

/// From which transformers on the way a family is written was looked at: since masks have a file of their own (4.53),
/// since attention is a function (4.48), or from its beginning.
enum class LookedAt : std::uint8_t { from_4_53, from_4_48, always };

/// What use_liger_kernel makes of a family (liger_kernel/transformers/monkey_patch.py, 0.6.2 and 0.8.5).
struct LigerDesign {
  /// From which release on: a model that it does not know it leaves as it is ("There are currently no Liger kernels
  /// supported for model type").
  enum class Since : std::uint8_t { v0_6, v0_8, never };
  Since since = Since::never;
  bool planned = true;
  bool last_norm_apart = false;  ///< the gradient of the last norm is not written over the one that arrives
  bool norms_heads = false;      ///< norms of q and k are replaced in every release
};

/// Source: models/<model_type>/modeling_<model_type>.py of transformers 4.57.1 and 5.24.0, which agree but for what
/// nn/behaviour.h tells apart.
struct FamilyDesign {
  NormNames norms{.before_attention = "input_layernorm", .before_mlp = "post_attention_layernorm"};
  NormKind norm = NormKind::llama;
  HeadNorm head_norm = HeadNorm::none;
  Activation activation = Activation::silu;
  bool joins_qkv = false;             ///< q, k and v are one projection
  bool joins_gate_up = false;         ///< so are gate and up
  bool rotary_in_float = false;       ///< the tables stay in float32, and what is turned is cast back
  bool rotary_by_layer_type = false;  ///< sliding layers have tables of their own
  RotaryPairs rotary_pairs = RotaryPairs::halves;
  bool turns_in_float = false;         ///< q and k are cast to be turned, and back
  bool turns_in_windows_only = false;  ///< layers that see everything know no positions
  bool joins_rotary_rest = false;      ///< only a part of each head is turned (partial_rotary_factor)
  EmbeddingScale embedding_scale = EmbeddingScale::none;
  bool parallel = false;         ///< attention and MLP read the same
  bool scales_residual = false;  ///< what attention and MLP add is multiplied by a number
  bool scales_logits = false;    ///< and so are the logits
  DecoderHabits decoder = {};
  LigerDesign liger = {};
  LookedAt looked_at = LookedAt::from_4_53;
  ExpertNames experts = {};
  bool router_first = false;  ///< ahead of the experts in the order of registration
  /// The experts are stacks in every version, turned, with biases and a gate of their own; their router, which has
  /// biases, weighs by the logits that it picks (GPT-OSS).
  bool biased_stacks = false;
  bool attention_sinks = false;  ///< each head has a score of its own for attending to nothing
  /// ZeRO-3 gathers a mixture as a whole, without being told (deepspeed/runtime/zero/leaf_module_config.py, 0.18.3).
  bool leaf_under_zero3 = false;
};

const FamilyDesign& design_of(Family family);

/// Where the embedding is scaled; `by_itself`: by a version whose Gemma 2 does so in the module.
EmbeddingScale where_embedding_scales(Family family, bool by_itself);

/// longrope's words about the model, where it has them, in one place with the rest.
RopeScaling rope_scaling_of(const ModelSpec& spec);

/// How many numbers of a head are turned.
std::int64_t rotary_width(const ModelSpec& spec);

/// Sets of rotary tables that are made once a pass: 1, or 2 where full and sliding layers have their own. `always`:
/// also those of a kind of layers that the model does not have (two modules, in transformers 4).
std::int64_t rotary_tables(const ModelSpec& spec, bool always);

/// Ranks that share layers keep the attention whole between its projections: q, k and v are cut out of one (Phi-3), or
/// normalised over all heads (OLMo 2) (base_model_tp_plan of their configurations, transformers 5.24).
bool joins_heads_under_tp(Family family);

}  // namespace qlp
