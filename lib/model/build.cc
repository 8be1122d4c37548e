#include "model/build.h"

#include <cmath>
#include <string>
#include <utility>

#include "model/check_adapted.h"
#include "model/family_design.h"
#include "model/target_matching.h"
#include "model/trained.h"
#include "nn/listed_experts.h"
#include "nn/looped_moe.h"
#include "nn/lora_linear.h"
#include "nn/sparse_moe.h"

namespace qlp {
namespace {

class Builder {
 public:
  Builder(const ModelSpec& spec, const BuildOptions& options)
      : spec_(spec), options_(options), design_(design_of(spec.family)) {}

  std::unique_ptr<CausalLm> build() {
    CausalLmParts parts;
    const ModelSlice& slice = options_.slice;
    if (slice.first()) parts.embedding = embedding();
    for (std::int64_t i = slice.first_layer(spec_.num_hidden_layers); i < slice.end_layer(spec_.num_hidden_layers); ++i)
      parts.layers.push_back(layer(i));
    if (slice.last()) parts.norm = norm("model.norm", spec_.hidden_size);
    if (options_.model_behaviour.rotary.place == RotaryPlace::decoder) add_rotaries(parts);
    if (slice.last()) parts.head = head(parts.embedding.get());
    if (parts.embedding && options_.adapter) adapt(*parts.embedding);
    const bool is_gemma2 = spec_.family == Family::gemma2;
    const ModelTraits traits{
        .scales_embedding = scales_embedding(),
        .embedding_scale = embedding_scale(),
        .logit_cap = spec_.final_logit_softcapping.value_or(0),
        .logit_scale = design_.scales_logits ? spec_.factors.logit_scale / spec_.factors.logits_scaling : 0,
        .sliding_window = spec_.sliding_window.value_or(0),
        .layers_narrow_masks = is_gemma2,
        .caches_in_training = design_.decoder.caches_in_training,
        .masks_by_layer_type = design_.decoder.masks_by_layer_type && options_.model_behaviour.has_masking_utils,
        .makes_every_mask = design_.decoder.makes_every_mask,
        .masks_empty_window = design_.decoder.masks_empty_window,
        // OLMo 3 makes both and picks before it calls a layer (modeling_olmo3.py, 4.57.1).
        .hands_on_both_rotaries =
            options_.model_behaviour.hands_on_both_rotaries && spec_.family == Family::gemma3_text,
        .holds_last_output = options_.model_behaviour.layers_return_tuples ||
                             (design_.decoder.returns_tuples && !options_.model_behaviour.broadcasts_masks),
        .kernel = options_.attention,
        .mask_maker = mask_maker()};
    return std::make_unique<CausalLm>(std::move(parts), traits);
  }
  const AdaptedParts& adapted() const { return adapted_; }

 private:
  std::unique_ptr<Embedding> embedding() const {
    // Whatever the plan of the model says (transformers distributed/mixin.py, init_parallel_plans).
    const std::int64_t ranks = options_.slice.tp;
    auto table = std::make_unique<Embedding>("model.embed_tokens", spec_.vocab_size / ranks, spec_.hidden_size);
    if (ranks > 1) table->share({MeshAxis::tp, ranks}, spec_.tie_word_embeddings);
    if (scales_embedding() == EmbeddingScale::by_module) table->keep_scale(embedding_scale());
    return table;
  }
  void adapt(Embedding& table) {
    const AdapterSpec& adapter = *options_.adapter;
    const std::string& name = table.name();
    if (is_saved_module(adapter, name)) table.train_copy();
    if (!adapts_embedding(adapter)) return;
    const bool hooked = options_.quantization && options_.quantization->prepare_kbit;
    table.adapt(rank_for(adapter, name), scaling_for(adapter, name), hooked);
    ++adapted_.modules;
  }
  TensorParallel parallel(TpStyle style) const {
    return options_.slice.tp == 1 ? TensorParallel{} : TensorParallel{style, options_.slice.tp};
  }

  /// Gemma's factor is the root of the width.
  double embedding_scale() const {
    const bool of_gemma = design_.norm == NormKind::gemma;
    return of_gemma ? std::sqrt(static_cast<double>(spec_.hidden_size)) : spec_.factors.embedding_multiplier;
  }
  double attention_scale() const {
    if (spec_.factors.attention_multiplier != 0) return spec_.factors.attention_multiplier;
    return 1 / std::sqrt(spec_.query_pre_attn_scalar.value_or(static_cast<double>(spec_.head_dim)));
  }
  EmbeddingScale scales_embedding() const {
    return where_embedding_scales(spec_.family, options_.model_behaviour.embedding_scales_itself);
  }

  bool joins_heads() const { return joins_heads_under_tp(spec_.family); }
  std::int64_t heads_on_rank(std::int64_t heads) const { return joins_heads() ? heads : heads / options_.slice.tp; }

  /// Norms of q and k over the width of a head.
  bool norms_heads() const {
    return design_.head_norm == HeadNorm::each || design_.head_norm == HeadNorm::each_at_last;
  }
  RotaryStyle rotary_style() const {
    const ModelBehaviour& behaviour = options_.model_behaviour;
    return {.pairs = design_.rotary_pairs,
            .float_tables = design_.rotary_in_float && behaviour.olmo2_in_float,
            .turns_in_float = design_.turns_in_float,
            .joins_rest = design_.joins_rotary_rest && behaviour.phi3_joins_rest,
            .looks_at_length = spec_.rope == RopeKind::longrope};
  }
  /// Where masking_utils.py does not, the models make their masks in one of two ways.
  MaskMaker mask_maker() const {
    const ModelBehaviour& behaviour = options_.model_behaviour;
    if (behaviour.has_masking_utils) return behaviour.broadcasts_masks ? MaskMaker::broadcast : MaskMaker::mapped;
    return design_.decoder.windowed_masks ? MaskMaker::windowed : MaskMaker::triangular;
  }
  /// Layers that slide stretch no frequencies; Gemma 3's have a base of their own.
  std::unique_ptr<RotaryEmbedding> rotary(std::string name, bool slides = false) const {
    const bool has_own_base = slides && spec_.family == Family::gemma3_text;
    const RotaryShape shape{.width = rotary_width(spec_),
                            .positions = spec_.max_position_embeddings,
                            .theta = has_own_base ? spec_.factors.rope_local_base_freq : spec_.rope_theta,
                            .scaling = slides ? RopeScaling{} : rope_scaling_of(spec_)};
    return std::make_unique<RotaryEmbedding>(std::move(name), shape, rotary_style(), options_.model_behaviour);
  }

  /// Layers that slide have tables of their own in some families: two modules in transformers 4, in 5 one that keeps
  /// frequencies for each kind of layers that there is, which comes to the same.
  void add_rotaries(CausalLmParts& parts) const {
    parts.rotary = rotary("model.rotary_emb");
    if (rotary_tables(spec_, options_.model_behaviour.hands_on_both_rotaries) == 2)
      parts.sliding_rotary = rotary("model.rotary_emb_local", true);
  }

  /// Which norms of a loaded model Liger replaces (liger_kernel/transformers/monkey_patch.py).
  std::optional<LigerNorm> liger_norm(std::string_view name) const {
    const auto& liger = options_.model_behaviour.liger;
    const bool of_head = name.ends_with("q_norm") || name.ends_with("k_norm");
    if (!liger || (of_head && !(norms_heads() && liger->replaces_head_norms))) return std::nullopt;
    const bool after = !design_.norms.after_mlp.empty();
    const bool chained = after && (design_.liger.last_norm_apart || name != "model.norm");
    return LigerNorm{.in_place = !chained, .skips_frozen_gain = liger->norm_skips_frozen_gain};
  }

  std::unique_ptr<RmsNorm> norm(std::string name, std::int64_t width) const {
    const bool casts_first = design_.norm == NormKind::olmo2 && !options_.model_behaviour.olmo2_in_float;
    const NormKind kind = casts_first ? NormKind::llama : design_.norm;
    const auto liger = liger_norm(name);
    const bool trains_copy = options_.adapter && is_saved_module(*options_.adapter, name);
    auto norm = std::make_unique<RmsNorm>(std::move(name), width, kind, spec_.rms_norm_eps, liger);
    if (trains_copy) norm->train_copy();
    return norm;
  }

  /// `in` and `out` are the features of the whole layer.
  std::unique_ptr<LinearModule> linear(const std::string& name, std::int64_t whole_in, std::int64_t whole_out,
                                       bool bias, TpStyle style) {
    const TensorParallel shared = parallel(style);
    const std::int64_t in = shared.in(whole_in), out = shared.out(whole_out);
    const bool adapt = options_.adapter && is_target(*options_.adapter, name, false);
    const std::string base_name = adapt ? name + ".base_layer" : name;
    std::unique_ptr<LinearModule> base;
    if (options_.quantization && options_.quantization->eight_bit())
      base = std::make_unique<Linear8bit>(base_name, in, out, bias, options_.quantization->llm_int8_threshold);
    else if (options_.quantization)
      base = std::make_unique<Linear4bit>(
          base_name, in, out, bias, FourBitCompute{options_.quantization->compute_dtype, options_.quant_behaviour});
    else
      base = float_linear(base_name, in, out, bias, shared);
    if (!adapt) return base;
    ++adapted_.modules;
    return std::make_unique<LoraLinear>(name, std::move(base), lora_options(name, shared), options_.adapter_behaviour);
  }

  LoraOptions lora_options(const std::string& name, const TensorParallel& shared) const {
    const AdapterSpec& adapter = *options_.adapter;
    return {.r = rank_for(adapter, name),
            .dropout = adapter.lora_dropout,
            .scaling = scaling_for(adapter, name),
            .dora = adapter.use_dora,
            .bias = adapter.lora_bias,
            .parallel = shared};
  }

  static std::unique_ptr<Linear> float_linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias,
                                              const TensorParallel& shared) {
    auto layer = std::make_unique<Linear>(name, in, out, bias, ParamRole::base_weight);
    layer->share(shared);
    return layer;
  }

  std::unique_ptr<LinearModule> head(Embedding* embedding) {
    const TensorParallel shared = parallel(TpStyle::colwise_gather_output);
    auto head =
        std::make_unique<Linear>("lm_head", spec_.hidden_size, shared.out(spec_.vocab_size), false, ParamRole::lm_head);
    head->share(shared);
    if (spec_.tie_word_embeddings && embedding) head->tie(embedding->weight());
    if (!options_.adapter) return head;
    if (const auto& tokens = options_.adapter->trainable_token_indices; !tokens.empty() && embedding) {
      embedding->train_tokens(tokens);
      if (spec_.tie_word_embeddings) head->follow(*embedding->tokens());
    }
    if (is_saved_module(*options_.adapter, "lm_head")) head->train_copy();
    if (!is_target(*options_.adapter, "lm_head", true)) return head;
    ++adapted_.modules;
    return std::make_unique<LoraLinear>("lm_head", std::move(head), lora_options("lm_head", {}),
                                        options_.adapter_behaviour);
  }

  std::unique_ptr<SelfAttention> attention(const std::string& prefix, std::int64_t index) {
    const std::string name = prefix + ".self_attn";
    const std::int64_t h = spec_.hidden_size, q = spec_.num_attention_heads * spec_.head_dim,
                       kv = spec_.num_key_value_heads * spec_.head_dim;
    const TpStyle in = joins_heads() ? TpStyle::colwise_gather_output : TpStyle::colwise;
    AttentionProjections p;
    if (design_.joins_qkv) {
      p.qkv = linear(name + ".qkv_proj", h, q + 2 * kv, false, in);
    } else {
      p.q = linear(name + ".q_proj", h, q, spec_.qkv_bias, in);
      p.k = linear(name + ".k_proj", h, kv, spec_.qkv_bias, in);
      p.v = linear(name + ".v_proj", h, kv, spec_.qkv_bias, in);
    }
    p.o = linear(name + ".o_proj", q, h, spec_.attention_bias,
                 joins_heads() ? TpStyle::rowwise_split_input : TpStyle::rowwise);
    p.head_norm = design_.head_norm;
    if (norms_heads()) {
      p.q_norm = norm(name + ".q_norm", spec_.head_dim);
      p.k_norm = norm(name + ".k_norm", spec_.head_dim);
      const RankGroup shared{MeshAxis::tp, options_.slice.tp};
      p.q_norm->sum_gradients(shared), p.k_norm->sum_gradients(shared);
    } else if (design_.head_norm == HeadNorm::joined) {
      p.q_norm = norm(name + ".q_norm", q);
      p.k_norm = norm(name + ".k_norm", kv);
    }
    if (options_.model_behaviour.rotary.in_every_attention) p.rotary = rotary(name + ".rotary_emb");
    const AttentionShape shape{
        .hidden = h,
        .heads = heads_on_rank(spec_.num_attention_heads),
        .kv_heads = heads_on_rank(spec_.num_key_value_heads),
        .head_dim = spec_.head_dim,
        .kernel = options_.attention,
        .turns = design_.turns_in_windows_only ? spec_.slides(index) : spec_.knows_positions(index),
        .sliding = spec_.slides(index),
        .window = spec_.slides(index) ? *spec_.sliding_window : 0,
        .softcap = spec_.attn_logit_softcapping.value_or(0),
        .scale = attention_scale(),
        .sinks = design_.attention_sinks,
        .ring = options_.slice.ring};
    return std::make_unique<SelfAttention>(name, shape, std::move(p), options_.model_behaviour,
                                           static_cast<std::size_t>(index));
  }

  std::unique_ptr<GatedMlp> mlp(const std::string& name) {
    const std::int64_t h = spec_.hidden_size, i = spec_.intermediate_size;
    MlpProjections p;
    if (design_.joins_gate_up) {
      p.gate_up = linear(name + ".gate_up_proj", h, 2 * i, false, TpStyle::colwise_gather_output);
    } else {
      p.gate = linear(name + ".gate_proj", h, i, spec_.mlp_bias, TpStyle::colwise);
      p.up = linear(name + ".up_proj", h, i, spec_.mlp_bias, TpStyle::colwise);
    }
    p.down =
        linear(name + ".down_proj", i, h, spec_.mlp_bias, p.gate_up ? TpStyle::rowwise_split_input : TpStyle::rowwise);
    return std::make_unique<GatedMlp>(name, design_.activation, std::move(p),
                                      options_.model_behaviour.liger.has_value());
  }

  RouterShape router_shape() const {
    return {.hidden = spec_.hidden_size,
            .experts = spec_.experts->num_experts,
            .top_k = spec_.experts->num_experts_per_tok,
            .normalises = spec_.experts->norm_topk_prob,
            .weights_in_logit_dtype = spec_.family != Family::mixtral,
            .picks_first = design_.biased_stacks,
            .spread = options_.even_routing ? Spread::evenly : Spread::by_router};
  }

  /// Every rank has all of it, and of its gate.
  SharedExpert shared_expert(const std::string& block) {
    const std::int64_t width = spec_.experts->shared_expert_intermediate_size;
    if (width == 0) return {};
    const std::string name = block + ".shared_expert";
    SharedExpert shared;
    auto projections = of_expert(name, {.gate = "gate_proj", .up = "up_proj", .down = "down_proj"}, width);
    shared.mlp = std::make_unique<GatedMlp>(name, design_.activation, std::move(projections), false);
    shared.gate = linear(block + ".shared_expert_gate", spec_.hidden_size, 1, false, TpStyle::none);
    return shared;
  }
  MlpProjections of_expert(const std::string& expert, const ExpertNames& names, std::int64_t width) {
    const auto projection = [&](std::string_view leaf, std::int64_t in, std::int64_t out) {
      return linear(expert + "." + std::string(leaf), in, out, false, TpStyle::none);
    };
    const std::int64_t h = spec_.hidden_size;
    MlpProjections p;
    p.gate = projection(names.gate, h, width), p.up = projection(names.up, h, width);
    p.down = projection(names.down, width, h);
    p.down_before_up = names.gate == "w1";  // w1, w2, w3
    return p;
  }

  /// The names of transformers 4.
  std::unique_ptr<FeedForward> listed_moe(const std::string& prefix) {
    const ExpertNames& names = design_.experts;
    const std::string name = prefix + "." + std::string(names.block);
    auto gate = linear(name + ".gate", spec_.hidden_size, spec_.experts->num_experts, false, TpStyle::none);
    std::vector<std::unique_ptr<GatedMlp>> experts;
    for (std::int64_t e = 0; e < spec_.experts->num_experts; ++e) {
      const std::string expert = name + ".experts." + std::to_string(e);
      auto projections = of_expert(expert, names, spec_.experts->intermediate_size);
      experts.push_back(std::make_unique<GatedMlp>(expert, Activation::silu, std::move(projections), false));
    }
    const ListedHabits habits{.looks_up = options_.model_behaviour.looks_up_experts, .leaf = design_.leaf_under_zero3};
    return std::make_unique<ListedMoe>(name, router_shape(), std::move(gate), std::move(experts), shared_expert(name),
                                       habits);
  }

  std::unique_ptr<FeedForward> looped_moe(const std::string& name) {
    RouterShape routed = router_shape();
    routed.spread = Spread::evenly_in_each_replica;
    auto router = std::make_unique<TopKRouter>(name + ".router", routed);
    auto experts = std::make_unique<LoopedExperts>(name + ".experts", experts_shape());
    return std::make_unique<LoopedMoe>(name, std::move(router), std::move(experts));
  }

  /// Of what a rank holds.
  ExpertsShape experts_shape() const {
    const ExpertSpec& experts = *spec_.experts;
    const std::int64_t tp = options_.slice.tp, ep = options_.slice.ep;
    return {.experts = experts.num_experts / ep,
            .hidden = spec_.hidden_size,
            .intermediate = experts.intermediate_size / (ep > 1 ? 1 : tp),
            .biased = design_.biased_stacks};
  }

  std::unique_ptr<SparseMoe> moe(const std::string& name) {
    const std::int64_t tp = options_.slice.tp, ep = options_.slice.ep;
    const std::string_view leaf = design_.biased_stacks ? ".router" : ".gate";
    auto gate = std::make_unique<TopKRouter>(name + std::string(leaf), router_shape());
    auto stacks = std::make_unique<FusedExperts>(name + ".experts", experts_shape());
    if (ep > 1)
      stacks->spread({.experts = {MeshAxis::ep, ep}, .batch = {MeshAxis::tp, tp}});
    else if (tp > 1)
      stacks->share({MeshAxis::tp, tp});
    if (options_.adapter) adapt_experts(name, *gate, *stacks);
    const SparseMoeHabits habits{.router_first = design_.router_first, .gives_weights = design_.biased_stacks};
    return std::make_unique<SparseMoe>(name, std::move(gate), std::move(stacks), shared_expert(name), habits);
  }

  void adapt_experts(const std::string& name, TopKRouter& gate, FusedExperts& stacks) {
    const AdapterSpec& adapter = *options_.adapter;
    const ExpertAdapters adapters = expert_adapters(adapter, name, design_.experts);
    adapted_.half_of_gate_up = adapted_.half_of_gate_up || adapters.half;
    if (adapters.router) gate.adapt(*adapters.router, scaling_for(adapter, name + ".gate"));
    // With a rank twice as large, gate and up have an alpha twice as large.
    stacks.adapt(adapters.gate_up, adapters.down, scaling_for(adapter, name + ".experts.down_proj"));
    adapted_.parameters += (adapters.gate_up ? 1U : 0U) + (adapters.down ? 1U : 0U) + (adapters.router ? 1U : 0U);
  }

  std::unique_ptr<FeedForward> feed_forward(const std::string& prefix, std::int64_t index) {
    if (!spec_.experts || !spec_.experts->in_layer(index)) return mlp(prefix + ".mlp");
    const bool loops = options_.model_behaviour.loops_over_experts;
    if (loops && design_.biased_stacks) return looped_moe(prefix + ".mlp");
    return loops ? listed_moe(prefix) : moe(prefix + ".mlp");
  }

  std::unique_ptr<DecoderLayer> layer(std::int64_t index) {
    const std::string name = "model.layers." + std::to_string(index);
    auto self_attention = attention(name, index);
    auto behind = feed_forward(name, index);
    const auto named = [&](std::string_view leaf) {
      return leaf.empty() ? nullptr : norm(name + "." + std::string(leaf), spec_.hidden_size);
    };
    const NormNames& names = design_.norms;
    BlockNorms norms{named(names.before_attention), named(names.after_attention), named(names.before_mlp),
                     named(names.after_mlp)};
    return std::make_unique<DecoderLayer>(
        name, std::move(self_attention), std::move(behind), std::move(norms),
        BlockSums{.scale = design_.scales_residual ? spec_.factors.residual_multiplier : 0,
                  .parallel = design_.parallel});
  }

  const ModelSpec& spec_;
  const BuildOptions& options_;
  const FamilyDesign& design_;
  AdaptedParts adapted_;
};

}  // namespace

Result<std::unique_ptr<CausalLm>> build_model(const ModelSpec& spec, const BuildOptions& options) {
  Builder builder(spec, options);
  auto model = builder.build();
  if (options.adapter)
    if (auto refusals = check_adapted(*options.adapter, *model, builder.adapted()); !refusals.empty())
      return Unexpected{std::move(refusals)};
  if (options.adapter)
    for (Parameter* parameter : model->parameters()) {
      parameter->trainable = is_trained(*options.adapter, *parameter, options.adapter_behaviour);
    }
  return model;
}

}  // namespace qlp
