#include "report/export_accelerate.h"

#include <algorithm>
#include <cctype>

#include "base/refusal.h"
#include "base/rounding.h"
#include "estimate/fsdp2_plan.h"
#include "estimate/phase_rules.h"
#include "model/class_names.h"
#include "plan/job_names.h"
#include "plan/loading.h"
#include "plan/plan_names.h"

namespace qlp {
namespace {

std::string upper(std::string_view word) {
  std::string out(word);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

std::string_view boolean(bool value) { return value ? "true" : "false"; }

/// With commas between.
std::string wrapped_classes(const JobSpec& job, const std::optional<std::vector<std::string>>& named) {
  std::string out;
  for (const std::string& name : named.value_or(std::vector{class_name(job.model.family, "DecoderLayer")}))
    out += (out.empty() ? "" : ",") + name;
  return out;
}

/// Gathers the lines of the file, and the options that cannot be in it.
class Writer {
 public:
  explicit Writer(const JobSpec& job, const NamedPlan& plan) : job_(job), plan_(plan) {}

  Result<std::string> write() {
    line("compute_environment", "LOCAL_MACHINE");
    const Mesh& mesh = job_.cluster.mesh;
    if (mesh.tp > 1 || mesh.pp > 1 || mesh.ep > 1)
      missing_.push_back(refusal("not-in-accelerate",
                                 "parallelism of layers, stages or experts is set up where the model is loaded, by "
                                 "from_pretrained(..., distributed_config=DistributedConfig(...))",
                                 "cluster.mesh",
                                 "give DistributedConfig tp_size, ep_size and fsdp_size in the training script"));
    std::visit([&](const auto& options) { body(options); }, plan_.plan);
    cluster();
    if (has_errors(missing_)) return Unexpected{std::move(missing_)};
    return std::move(text_);
  }

 private:
  void line(std::string_view key, std::string_view value) {
    text_ += std::string(key) + ": " + std::string(value) + "\n";
  }
  void inner(std::string_view key, std::string_view value) { line("  " + std::string(key), value); }
  void only(bool is_default, const std::string& option, const std::string& hint) {
    if (!is_default)
      missing_.push_back(refusal("not-in-accelerate", "accelerate's file has no key for " + option,
                                 "plans." + plan_.name + "." + option, hint));
  }

  void cluster() {
    const ClusterSpec& cluster = job_.cluster;
    const bool single = std::holds_alternative<Single>(plan_.plan);
    const std::int64_t ranks = single ? 1 : cluster.world_size;
    line("machine_rank", "0");
    line("main_training_function", "main");
    // Beside a file of DeepSpeed's own accelerate wants none (dataclasses.py, _deepspeed_config_checks).
    if (!std::holds_alternative<Zero>(plan_.plan))
      line("mixed_precision", job_.training.bf16 ? "bf16" : job_.training.fp16 ? "fp16" : "'no'");
    line("num_machines", std::to_string(ceil_div(ranks, cluster.gpus_per_node)));
    line("num_processes", std::to_string(ranks));
    line("rdzv_backend", "static");
    line("same_network", "true");
    line("use_cpu", "false");
  }

  void body(const Single&) { line("distributed_type", "'NO'"); }
  void body(const Ddp& ddp) {
    only(ddp.bucket_cap_mb == Ddp{}.bucket_cap_mb, "bucket_cap_mb", "it is TrainingArguments.ddp_bucket_cap_mb");
    only(!ddp.gradient_as_bucket_view, "gradient_as_bucket_view",
         "it is in accelerate's DistributedDataParallelKwargs");
    line("distributed_type", "MULTI_GPU");
  }
  void body(const Fsdp1& fsdp) {
    only(fsdp.limit_all_gathers, "limit_all_gathers", "construct FullyShardedDataParallel yourself");
    only(fsdp.mixed_precision_policy == MixedPrecision{}, "mixed_precision_policy",
         "give it to FullyShardedDataParallelPlugin");
    only(!job_.adapter || !fsdp.auto_wrap_policy, "auto_wrap_policy", "the Trainer puts PEFT's policy in its place");
    begin_fsdp("1");
    inner("fsdp_sharding_strategy", upper(name_of(fsdp.sharding_strategy)));
    inner("fsdp_use_orig_params", boolean(fsdp.use_orig_params));
    inner("fsdp_backward_prefetch", upper(name_of(fsdp.backward_prefetch)));
    inner("fsdp_forward_prefetch", boolean(fsdp.forward_prefetch));
    inner("fsdp_sync_module_states", boolean(loads_on_rank0()));
    const WrapPolicy policy = fsdp.auto_wrap_policy.value_or(WrapPolicy::transformer_based_wrap);
    inner("fsdp_auto_wrap_policy", upper(name_of(policy)));
    if (policy == WrapPolicy::transformer_based_wrap)
      inner("fsdp_transformer_layer_cls_to_wrap", wrapped_classes(job_, fsdp.transformer_cls_names_to_wrap));
    if (policy == WrapPolicy::size_based_wrap) inner("fsdp_min_num_params", std::to_string(fsdp.min_num_params));
    inner("fsdp_offload_params", boolean(fsdp.cpu_offload));
  }
  void body(const Fsdp2& fsdp) {
    const bool* reshards = std::get_if<bool>(&fsdp.reshard_after_forward);
    only(reshards != nullptr, "reshard_after_forward", "a number of ranks is for your own fully_shard");
    only(fsdp.forward_prefetch == 0, "forward_prefetch", "call set_modules_to_forward_prefetch yourself");
    only(fsdp.backward_prefetch == 0, "backward_prefetch", "call set_modules_to_backward_prefetch yourself");
    only(fsdp.mp_policy == Fsdp2MixedPrecision{}, "mp_policy", "give it to FullyShardedDataParallelPlugin");
    only(fsdp.pin_memory, "pin_memory", "give CPUOffloadPolicy to FullyShardedDataParallelPlugin");
    only(fsdp.ignored_params == Fsdp2Ignored::none || fsdp.ignored_params == Fsdp2Ignored::quantized, "ignored_params",
         "export --to torch lists them for your own fully_shard");
    begin_fsdp("2");
    inner("fsdp_reshard_after_forward", boolean(reshards == nullptr || *reshards));
    const bool wraps = fsdp.auto_wrap_policy == Fsdp2Wrap::transformer_based_wrap;
    inner("fsdp_auto_wrap_policy", wraps ? "TRANSFORMER_BASED_WRAP" : "NO_WRAP");
    if (wraps) inner("fsdp_transformer_layer_cls_to_wrap", wrapped_classes(job_, fsdp.transformer_cls_names_to_wrap));
    inner("fsdp_offload_params", boolean(fsdp.cpu_offload));
    const Mesh& mesh = job_.cluster.mesh;
    if (!fsdp.hybrid && mesh.cp == 1) return;
    const std::int64_t shards = shard_ranks(job_, fsdp);  // context parallel ranks among them
    line("parallelism_config", "");
    inner("parallelism_config_dp_replicate_size", std::to_string(job_.cluster.world_size / shards));
    inner("parallelism_config_dp_shard_size", std::to_string(shards / mesh.cp));
    if (mesh.cp == 1) return;
    inner("parallelism_config_cp_size", std::to_string(mesh.cp));
    inner("parallelism_config_cp_comm_strategy", name_of(mesh.cp_comm_strategy));
  }
  void body(const Zero&) {
    line("distributed_type", "DEEPSPEED");
    line("deepspeed_config", "");
    text_ += "  # beside this file: what --to deepspeed writes\n";
    inner("deepspeed_config_file", kDeepspeedConfigFile);
    inner("zero3_init_flag", boolean(plan_.name == "zero3"));
  }

  void begin_fsdp(std::string_view version) {
    line("distributed_type", "FSDP");
    line("fsdp_config", "");
    inner("fsdp_version", version);
    inner("fsdp_cpu_ram_efficient_loading", boolean(loads_on_rank0()));
    const bool full = job_.training.checkpoint ? !checkpoints_shards(job_, plan_.plan) : job_.training.saves_model;
    inner("fsdp_state_dict_type", name_of(full ? StateDictType::full : StateDictType::sharded));
    inner("fsdp_activation_checkpointing", "false");
  }
  bool loads_on_rank0() const { return loading_under(job_, plan_.plan) == Loading::rank0; }

  const JobSpec& job_;
  const NamedPlan& plan_;
  std::string text_;
  Diagnostics missing_;
};

}  // namespace

Result<std::string> accelerate_config(const JobSpec& job, const NamedPlan& plan) { return Writer(job, plan).write(); }

}  // namespace qlp
