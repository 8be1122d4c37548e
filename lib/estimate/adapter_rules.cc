#include "estimate/adapter_rules.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "base/refusal.h"
#include "estimate/model_options.h"
#include "estimate/weight_list.h"
#include "model/family_design.h"
#include "model/target_matching.h"

namespace qlp {
namespace {

class Rules {
 public:
  Rules(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack)
      : job_(job), adapter_(*job.adapter), plan_(plan), stack_(stack) {}

  Diagnostics check() {
    check_versions();
    check_layers();
    check_embedding();
    check_tokens();
    check_biases();
    return std::move(found_);
  }

 private:
  void refuse_if(bool applies, std::string code, std::string message, const std::string& key, std::string hint) {
    if (applies) found_.push_back(refusal(std::move(code), std::move(message), "adapter." + key, std::move(hint)));
  }

  void check_versions() {
    const auto needs = [&](bool used, bool known, const std::string& key, const std::string& since) {
      refuse_if(used && !known, "not-in-peft", "LoraConfig has " + key + " from PEFT " + since + " on", key,
                "take a newer stack, or leave it out");
    };
    needs(!adapter_.exclude_modules.empty() || !adapter_.exclude_pattern.empty(), stack_.peft.has_exclude_modules(),
          "exclude_modules", "0.14");
    needs(adapter_.lora_bias, stack_.peft.has_lora_bias(), "lora_bias", "0.14");
    needs(!adapter_.trainable_token_indices.empty(), stack_.peft.has_trainable_tokens(), "trainable_token_indices",
          "0.15");
    needs(!adapter_.target_parameters.empty(), stack_.peft.has_target_parameters(), "target_parameters", "0.17");
  }

  void check_layers() {
    const bool saves_targets = std::ranges::any_of(adapter_.target_modules, [&](const std::string& target) {
      return std::ranges::find(adapter_.modules_to_save, target) != adapter_.modules_to_save.end();
    });
    refuse_if(saves_targets && !stack_.peft.spares_saved_modules(), "saved-target",
              "PEFT before 0.16 copies a module of modules_to_save with its adapter in it, which is not planned",
              "modules_to_save", "name it there, or in target_modules");
    const bool of_experts =
        job_.model.experts && stack_.models.lists_experts(job_.model.family) && !adapter_.layers_to_transform.empty();
    refuse_if(of_experts && !stack_.peft.finds_layer_of_expert(), "layer-of-expert",
              "PEFT before 0.20 takes the number of an expert for that of its layer", "layers_to_transform",
              "take a newer stack, or leave it out");
    const bool stacks = job_.model.experts && !stack_.models.lists_experts(job_.model.family);
    refuse_if(!adapter_.target_parameters.empty() && !stacks, "bare-parameters",
              "only stacks of experts and their routers are bare parameters that are planned", "target_parameters",
              "target_modules for linear layers");
    const auto is_stack = [&](const std::string& name) {
      return adapts_any_experts({.target_parameters = {name}}, job_.model);
    };
    for (const std::string& name : adapter_.target_parameters)
      refuse_if(stacks && !is_stack(name), "bare-parameters",
                name + " is no stack of experts, nor the weight of their router", "target_parameters",
                "experts.gate_up_proj, experts.down_proj, gate.weight");
  }

  bool is_plain_plan() const { return std::holds_alternative<Single>(plan_) || std::holds_alternative<Ddp>(plan_); }

  void check_embedding() {
    if (!adapts_embedding(adapter_)) return;
    const std::string key = "target_modules", hint = "leave embed_tokens out, or train it whole: modules_to_save";
    refuse_if(adapter_.use_dora, "embedding-dora", "DoRA on the embedding is not planned yet", key, hint);
    refuse_if(adapter_.lora_bias, "embedding-bias", "PEFT: lora_bias=True is not supported for Embedding", "lora_bias",
              "false, or leave embed_tokens out");
    check_beside_table("embedding-adapter", "an adapter on the embedding", key, hint);
  }

  void check_tokens() {
    const auto& tokens = adapter_.trainable_token_indices;
    if (tokens.empty()) return;
    const std::string key = "trainable_token_indices";
    refuse_if(*std::ranges::max_element(tokens) >= job_.model.vocab_size, "token-out-of-vocabulary",
              "the vocabulary ends at token " + std::to_string(job_.model.vocab_size - 1), key, "tokens of the model");
    refuse_if(is_saved_module(adapter_, "model.embed_tokens"), "tokens-of-copy",
              "PEFT: the embedding layer is already marked to be trained fully", key,
              "leave embed_tokens out of modules_to_save, or this key");
    refuse_if(adapts_embedding(adapter_), "tokens-of-adapter",
              "single tokens beside an adapter on the embedding are not planned yet", key,
              "leave embed_tokens out of target_modules");
    const bool reads_head = job_.model.tie_word_embeddings;
    refuse_if(reads_head && is_target(adapter_, "lm_head", true), "tokens-of-head",
              "tokens of a tied table with an adapter on its head are not planned yet", key, "leave lm_head out");
    refuse_if(reads_head && is_saved_module(adapter_, "lm_head"), "tokens-of-head",
              "tokens of a tied table with a copy of its head are not planned yet", key, "leave lm_head out");
    refuse_if(reads_head && uses_liger(job_), "tokens-liger",
              "Liger's loss reads the weight of the head without the tokens that are trained", key, "loss: plain");
    const bool splits_root = std::holds_alternative<Fsdp2>(plan_) && stack_.fsdp2.splits_root();
    refuse_if(reads_head && splits_root, "tokens-shared",
              "accelerate takes a tied table with tokens that are trained for one that is not tied, and cuts it twice: "
              "'FSDP requires named DeviceMesh dims for ND parallelism'",
              key, "train the table whole: modules_to_save, or plan zero2");
    check_beside_table("token-rows", "training single tokens", key, "train the table whole: modules_to_save");
  }

  /// What lies beside the embedding and is trained.
  void check_beside_table(const std::string& code, const std::string& what, const std::string& key,
                          const std::string& hint) {
    const Mesh& mesh = job_.cluster.mesh;
    const bool shared = mesh.tp > 1 || mesh.cp > 1 || mesh.pp > 1 || mesh.ep > 1;
    const bool by_itself = stack_.models.behaviour(job_.model.family).embedding_scales_itself;
    const bool scales = where_embedding_scales(job_.model.family, by_itself) == EmbeddingScale::by_module;
    refuse_if(scales && !stack_.peft.scales_embeddings(), code + "-scaled",
              what + " is planned from PEFT 0.18 on where the embedding multiplies what it gives by a number", key,
              hint);
    refuse_if(shared, code + "-sharded", what + " is not planned where ranks share layers, sequences or stages", key,
              hint);
  }

  /// Of layers of the base, which few families have.
  bool trains_biases() const {
    return std::ranges::any_of(list_weights(job_, stack_.load), [](const ListedWeight& weight) {
      return weight.kind == WeightKind::bias && weight.trained;
    });
  }

  void check_biases() {
    const bool trains = adapter_.bias != AdapterBias::none || adapter_.lora_bias;
    const std::string key = adapter_.lora_bias ? "lora_bias" : "bias";
    const auto* fsdp1 = std::get_if<Fsdp1>(&plan_);
    refuse_if(fsdp1 && !fsdp1->use_orig_params && trains_biases(), "fsdp1-mixed-unit",
              "trained biases lie beside frozen weights in an FSDP1 unit: 'Must flatten tensors with uniform "
              "`requires_grad` when `use_orig_params=False`'",
              "bias", "none, or set use_orig_params to true");
    refuse_if(trains && job_.cluster.mesh.tp > 1, "bias-tp",
              "trained biases of layers that are cut are not planned yet", key, "leave it out");
  }

  const JobSpec& job_;
  const AdapterSpec& adapter_;
  const ShardingPlan& plan_;
  const StackProfile& stack_;
  Diagnostics found_;
};

}  // namespace

Diagnostics check_adapter(const JobSpec& job, const ShardingPlan& plan, const StackProfile& stack) {
  return job.adapter ? Rules(job, plan, stack).check() : Diagnostics{};
}

}  // namespace qlp
