#include "estimate/weight_list.h"

#include <string>
#include <utility>

#include "model/family_design.h"
#include "model/target_matching.h"
#include "plan/stack_profile.h"
#include "quant/quant_state.h"

namespace qlp {
namespace {

class Lister {
 public:
  Lister(const JobSpec& job, const LoadBehaviour& behaviour) : job_(job), model_(job.model), behaviour_(behaviour) {}

  Weights list() {
    table("model.embed_tokens", true);
    for (std::int64_t layer = 0; layer < model_.num_hidden_layers; ++layer) decoder_layer(layer);
    norm("model.norm", model_.hidden_size);
    table("lm_head", !model_.tie_word_embeddings);
    if (job_.adapter && is_target(*job_.adapter, "lm_head", true))
      adapters("lm_head", model_.vocab_size, model_.hidden_size, false);
    return std::move(weights_);
  }

 private:
  /// Of weights that are loaded and not packed (peft.prepare_model_for_kbit_training).
  DType float_dtype() const {
    return job_.quantization && job_.quantization->prepare_kbit ? DType::float32 : job_.dtype;
  }
  DType table_dtype() const {
    return job_.quantization && job_.quantization->trl_bf16_cast ? DType::bfloat16 : float_dtype();
  }
  /// What is added for training is cast last by TRL.
  DType trained_dtype(DType dtype) const { return job_.adapter->dtype.value_or(dtype); }
  bool upcasts_adapters() const { return job_.adapter->autocast_adapter_dtype && behaviour_.casts_adapters; }
  DType matrix_dtype(bool beside_4bit) const {
    if (upcasts_adapters()) return trained_dtype(DType::float32);
    return trained_dtype(made_in(beside_4bit));
  }
  DType made_in(bool beside_4bit) const {
    if (!beside_4bit) return float_dtype();
    if (behaviour_.adapters_in_compute_dtype && !job_.quantization->eight_bit())
      return job_.quantization->compute_dtype;
    return is_floating(job_.quantization->quant_storage) ? job_.quantization->quant_storage : DType::float32;
  }
  /// The magnitude is a norm of the sum of weight and update, in the wider of their dtypes.
  DType magnitude_dtype(bool beside_4bit) const {
    if (upcasts_adapters()) return trained_dtype(DType::float32);
    const DType weight = beside_4bit ? job_.dtype : float_dtype();
    return trained_dtype(weight == made_in(beside_4bit) ? weight : DType::float32);
  }

  /// Of a sum of the two; all are floating.
  static DType promote(DType a, DType b) { return a == b ? a : DType::float32; }

  void add(WeightKind kind, std::int64_t rows, std::int64_t width) {
    weights_.push_back({.kind = kind,
                        .layer = layer_,
                        .block = block_,
                        .rows = rows,
                        .width = width,
                        .vector = kind == WeightKind::norm || kind == WeightKind::bias,
                        .dtype = float_dtype(),
                        .trained = !job_.adapter,
                        .elements = rows * width});
  }
  void add_trained(WeightKind kind, std::int64_t rows, std::int64_t width, DType dtype) {
    add(kind, rows, width);
    weights_.back().dtype = dtype, weights_.back().trained = true;
  }

  /// The last weight is that of the linear layer of this name.
  void name_last(const std::string& name) {
    const auto& targets = job_.training.optim_targets;
    weights_.back().projected =
        targets && is_optim_target(*targets, std::string(wrapper_prefix(job_.adapter.has_value())) + name);
  }

  /// Of a layer that ranks share, the last weight is this rank's part: of its rows, or of their width.
  void share_last(bool by_rows) {
    if (on_every_rank_) return;
    ListedWeight& weight = weights_.back();
    (by_rows ? weight.rows : weight.width) /= job_.cluster.mesh.tp;
  }

  /// Whole experts of a stack, or a part of each.
  void share_experts() {
    weights_.back().experts = true;
    if (job_.cluster.mesh.ep == 1) return share_last(false);
    weights_.back().rows /= job_.cluster.mesh.ep;
  }

  void norm(const std::string& name, std::int64_t width) {
    add(WeightKind::norm, width, 1);
    if (!job_.adapter || !is_saved_module(*job_.adapter, name)) return;
    add_trained(WeightKind::saved_copy, width, 1, trained_dtype(float_dtype()));
    weights_.back().vector = true;
  }

  void table(std::string_view name, bool own) {
    const bool embedding = name == "model.embed_tokens";
    if (own) {
      add(WeightKind::table, model_.vocab_size, model_.hidden_size);
      weights_.back().dtype = table_dtype(), weights_.back().embedding = embedding;
      if (!embedding) name_last(std::string(name));
      share_last(true);
    }
    if (!job_.adapter) return;
    if (embedding) beside_embedding();
    if (is_saved_module(*job_.adapter, std::string(name))) {
      add_trained(WeightKind::saved_copy, model_.vocab_size, model_.hidden_size, trained_dtype(float_dtype()));
      weights_.back().embedding = embedding;
      if (!embedding) name_last(std::string(name) + ".modules_to_save.default");
      share_last(true);
    }
  }

  /// Matrices, or the rows of single tokens.
  void beside_embedding() {
    const AdapterSpec& adapter = *job_.adapter;
    const DType dtype = upcasts_adapters() ? trained_dtype(DType::float32) : trained_dtype(float_dtype());
    const std::int64_t r = rank_for(adapter, "model.embed_tokens");
    if (adapts_embedding(adapter)) {
      add_trained(WeightKind::adapter, r, model_.vocab_size, dtype);
      weights_.back().beside_embedding = true;
      add_trained(WeightKind::adapter, model_.hidden_size, r, dtype);
      weights_.back().beside_embedding = true;
    }
    const auto tokens = static_cast<std::int64_t>(adapter.trainable_token_indices.size());
    if (tokens == 0) return;
    add_trained(WeightKind::adapter, tokens, model_.hidden_size, dtype);
    weights_.back().beside_embedding = true;
  }

  /// Gives the dtype of its result for an input in that dtype, as far as 4-bit layers go (whose biases follow it).
  DType linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias, DType input) {
    const bool adapted = job_.adapter && is_target(*job_.adapter, name, false);
    if (job_.quantization) {
      const DType storage = job_.quantization->quant_storage;
      if (job_.quantization->eight_bit())
        add(WeightKind::packed, out, in);
      else
        add(WeightKind::packed, packed_count(out * in, storage), 1);
      weights_.back().dtype = storage, weights_.back().elements = out * in;
    } else {
      add(WeightKind::matrix, out, in);
      name_last(name);
    }
    const bool by_rows = !name.ends_with("o_proj") && !name.ends_with("down_proj");
    share_last(by_rows);
    if (bias) {
      add(WeightKind::bias, out, 1), weights_.back().input = input;
      if (by_rows) share_last(true);
      const AdapterBias trained = job_.adapter ? job_.adapter->bias : AdapterBias::none;
      if (trained == AdapterBias::all || (trained == AdapterBias::lora_only && adapted))
        weights_.back().trained = true, weights_.back().dtype = trained_dtype(float_dtype());
    }
    if (adapted) adapters(name, out, in, job_.quantization.has_value());
    if (!adapted || !job_.training.mixed_precision()) return input;
    // Under autocast nothing casts the sum; DoRA's part is in the dtype of its magnitude (peft/tuners/lora/bnb.py).
    const DType result = promote(input, job_.training.autocast_dtype());
    return job_.adapter->use_dora ? promote(result, magnitude_dtype(job_.quantization.has_value())) : result;
  }
  void adapters(const std::string& name, std::int64_t out, std::int64_t in, bool beside_4bit) {
    const std::int64_t r = rank_for(*job_.adapter, name);
    add_trained(WeightKind::adapter, r, in, matrix_dtype(beside_4bit));
    name_last(name + ".lora_A.default");
    add_trained(WeightKind::adapter, out, r, matrix_dtype(beside_4bit));
    name_last(name + ".lora_B.default");
    share_last(true);  // those of layers that are cut by their input features are refused
    if (job_.adapter->lora_bias) {
      add_trained(WeightKind::adapter, out, 1, matrix_dtype(beside_4bit));
      weights_.back().vector = true, weights_.back().adapter_bias = true, share_last(true);
    }
    if (!job_.adapter->use_dora) return;
    add_trained(WeightKind::adapter, out, 1, magnitude_dtype(beside_4bit));
    weights_.back().vector = true;
  }

  void decoder_layer(std::int64_t index) {
    layer_ = index;
    const std::string name = "model.layers." + std::to_string(index);
    block_ = ModuleKind::attention;
    attention(name + ".self_attn.");
    const bool dense = !model_.experts || !model_.experts->in_layer(index);
    block_ = dense ? std::optional{ModuleKind::mlp} : std::nullopt;
    if (dense)
      mlp(name + ".mlp.");
    else if (design_.biased_stacks)
      biased_experts(name + ".mlp");
    else if (lists_experts_)
      listed_experts(name + "." + std::string(design_.experts.block) + ".");
    else
      experts(name + ".mlp");
    block_.reset();
    for (const std::string_view leaf : design_.norms.all())
      if (!leaf.empty()) norm(name + "." + std::string(leaf), model_.hidden_size);
    layer_ = ListedWeight::kOutsideLayers;
  }
  void attention(const std::string& prefix) {
    const std::int64_t hidden = model_.hidden_size;
    const std::int64_t q = model_.num_attention_heads * model_.head_dim;
    const std::int64_t kv = model_.num_key_value_heads * model_.head_dim;
    if (design_.attention_sinks) {
      add(WeightKind::matrix, model_.num_attention_heads, 1);
      weights_.back().vector = true;
    }
    const bool fused = design_.joins_qkv;  // which registers o_proj first
    if (!fused) {
      linear(prefix + "q_proj", q, hidden, model_.qkv_bias, residual_);
      linear(prefix + "k_proj", kv, hidden, model_.qkv_bias, residual_);
      linear(prefix + "v_proj", kv, hidden, model_.qkv_bias, residual_);
    }
    const DType input = residual_,
                attended = job_.training.mixed_precision() ? job_.training.autocast_dtype() : residual_;
    residual_ = promote(residual_, linear(prefix + "o_proj", hidden, q, model_.attention_bias, attended));
    if (fused) linear(prefix + "qkv_proj", q + 2 * kv, hidden, false, input);
    if (design_.head_norm == HeadNorm::none) return;
    const bool joined = design_.head_norm == HeadNorm::joined;
    norm(prefix + "q_norm", joined ? q : model_.head_dim);
    norm(prefix + "k_norm", joined ? kv : model_.head_dim);
  }
  /// The experts of a layer are a list of MLPs beside a router (transformers 4).
  void listed_experts(const std::string& prefix) {
    const ExpertSpec& e = *model_.experts;
    const ExpertNames& names = design_.experts;
    const bool down_before_up = names.down < names.up;
    const std::int64_t h = model_.hidden_size, i = e.intermediate_size;
    linear(prefix + "gate", e.num_experts, h, false, residual_);
    for (std::int64_t expert = 0; expert < e.num_experts; ++expert) {
      const std::string name = prefix + "experts." + std::to_string(expert) + ".";
      linear(name + std::string(names.gate), i, h, false, residual_);
      if (down_before_up) linear(name + std::string(names.down), h, i, false, residual_);
      linear(name + std::string(names.up), i, h, false, residual_);
      if (!down_before_up) linear(name + std::string(names.down), h, i, false, residual_);
    }
    shared_expert(prefix);
  }
  /// In no plan of tensor parallelism.
  void shared_expert(const std::string& prefix) {
    const std::int64_t h = model_.hidden_size, i = model_.experts->shared_expert_intermediate_size;
    if (i == 0) return;
    on_every_rank_ = true;
    const std::string name = prefix + "shared_expert.";
    const DType gate = linear(name + "gate_proj", i, h, false, residual_);
    const DType activated = promote(gate, linear(name + "up_proj", i, h, false, residual_));
    linear(name + "down_proj", h, i, false, activated);
    linear(prefix + "shared_expert_gate", 1, h, false, residual_);
    on_every_rank_ = false;
  }
  /// Biases that are no linear layer's; of a router, which is called bias, or of a stack, which has it in its name.
  void bare_bias(std::int64_t rows, std::int64_t width) {
    add(WeightKind::bias, rows, width);
    weights_.back().vector = width == 1;
    const bool named = width == 1 || StackProfile(job_.stack).peft.behaviour().trains_bare_biases;
    if (job_.adapter && job_.adapter->bias == AdapterBias::all && named)
      weights_.back().trained = true, weights_.back().dtype = trained_dtype(float_dtype());
  }
  /// GPT-OSS's experts: stacks with biases behind a router that has them too.
  void biased_experts(const std::string& mixture) {
    const ExpertSpec& e = *model_.experts;
    const std::int64_t h = model_.hidden_size, i = e.intermediate_size;
    const ExpertAdapters adapters =
        job_.adapter ? expert_adapters(*job_.adapter, mixture, design_.experts) : ExpertAdapters{};
    add(WeightKind::matrix, e.num_experts, h);
    bare_bias(e.num_experts, 1);
    add(WeightKind::matrix, e.num_experts, 2 * i * h);
    weights_.back().experts = true;
    bare_bias(e.num_experts, 2 * i);
    add(WeightKind::matrix, e.num_experts, h * i);
    weights_.back().experts = true;
    bare_bias(e.num_experts, h);
    if (adapters.gate_up) stacked_adapters(e.num_experts, 2 * i, h, *adapters.gate_up);
    if (adapters.down) stacked_adapters(e.num_experts, h, i, *adapters.down);
  }
  /// The experts of a layer are two stacks of matrices beside a router (transformers 5).
  void experts(const std::string& mixture) {
    const ExpertSpec& e = *model_.experts;
    const bool router_first = design_.router_first;
    const std::int64_t h = model_.hidden_size, i = e.intermediate_size;
    const ExpertAdapters adapters =
        job_.adapter ? expert_adapters(*job_.adapter, mixture, design_.experts) : ExpertAdapters{};
    const auto router = [&] {
      add(WeightKind::matrix, e.num_experts, h);
      if (adapters.router) stacked_adapters(1, e.num_experts, h, *adapters.router);
    };
    if (router_first) router();
    add(WeightKind::matrix, e.num_experts, 2 * i * h);
    share_experts();
    add(WeightKind::matrix, e.num_experts, h * i);
    share_experts();
    if (adapters.gate_up) stacked_adapters(e.num_experts, 2 * i, h, *adapters.gate_up);
    if (adapters.down) stacked_adapters(e.num_experts, h, i, *adapters.down);
    if (!router_first) router();
    shared_expert(mixture + ".");
  }
  /// Of a stack of `count` matrices, side by side in two.
  void stacked_adapters(std::int64_t count, std::int64_t out, std::int64_t in, std::int64_t r) {
    const DType dtype = upcasts_adapters() ? trained_dtype(DType::float32) : trained_dtype(float_dtype());
    add_trained(WeightKind::adapter, count * r, in, dtype);
    add_trained(WeightKind::adapter, out, count * r, dtype);
  }
  void mlp(const std::string& prefix) {
    const std::int64_t hidden = model_.hidden_size, inner = model_.intermediate_size;
    DType activated = residual_;
    if (design_.joins_gate_up) {
      activated = linear(prefix + "gate_up_proj", 2 * inner, hidden, false, residual_);
    } else {
      activated = linear(prefix + "gate_proj", inner, hidden, model_.mlp_bias, residual_);
      activated = promote(activated, linear(prefix + "up_proj", inner, hidden, model_.mlp_bias, residual_));
    }
    residual_ = promote(residual_, linear(prefix + "down_proj", hidden, inner, model_.mlp_bias, activated));
  }

  const JobSpec& job_;
  const ModelSpec& model_;
  const FamilyDesign& design_ = design_of(model_.family);
  LoadBehaviour behaviour_;
  bool lists_experts_ = StackProfile(job_.stack).models.lists_experts(model_.family);
  bool on_every_rank_ = false;  ///< what is listed is, where ranks share other layers
  std::int64_t layer_ = ListedWeight::kOutsideLayers;
  std::optional<ModuleKind> block_;
  DType residual_ = float_dtype();  ///< of the residual stream, layer by layer
  Weights weights_;
};

}  // namespace

Weights list_weights(const JobSpec& job, const LoadBehaviour& behaviour) { return Lister(job, behaviour).list(); }

}  // namespace qlp
