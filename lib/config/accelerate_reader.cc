#include "config/accelerate_reader.h"

#include <array>

#include "config/deepspeed_reader.h"
#include "config/map_reader.h"
#include "plan/catalogue.h"
#include "plan/job_names.h"
#include "plan/plan_names.h"

namespace qlp {
namespace {

/// Keys that change no memory of a rank.
constexpr std::array<std::string_view, 24> kAccelerateWithoutMemory{"compute_environment",
                                                                    "debug",
                                                                    "downcast_bf16",
                                                                    "enable_cpu_affinity",
                                                                    "machine_rank",
                                                                    "main_training_function",
                                                                    "main_process_ip",
                                                                    "main_process_port",
                                                                    "rdzv_backend",
                                                                    "same_network",
                                                                    "tpu_env",
                                                                    "tpu_use_cluster",
                                                                    "tpu_use_sudo",
                                                                    "tpu_name",
                                                                    "tpu_zone",
                                                                    "commands",
                                                                    "command_file",
                                                                    "gpu_ids",
                                                                    "mpirun_config",
                                                                    "megatron_lm_config",
                                                                    "dynamo_config",
                                                                    "fp8_config",
                                                                    "fsdp_config",
                                                                    "deepspeed_config"};
constexpr std::array<std::string_view, 1> kFsdpWithoutMemory{"fsdp_sync_module_states"};
constexpr std::array<std::string_view, 2> kDeepspeedWithoutMemory{"deepspeed_multinode_launcher", "zero3_init_flag"};
constexpr std::array<std::string_view, 5> kStrategies{"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                                                      "HYBRID_SHARD_ZERO2"};
constexpr std::array<std::string_view, 5> kStrategyPlans{"fsdp1-full-shard", "fsdp1-shard-grad-op", "fsdp1-no-shard",
                                                         "fsdp1-hybrid-shard", "fsdp1-hybrid-shard-zero2"};
constexpr std::array<std::string_view, 3> kPolicies{"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"};
constexpr std::array<std::string_view, 3> kPrefetches{"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"};
constexpr std::array<std::string_view, 3> kPrecisions{"no", "bf16", "fp16"};

/// The keys of fsdp_config, which may be written without their prefix.
class FsdpKeys {
 public:
  explicit FsdpKeys(MapReader& map) : map_(map) {}

  std::string_view named(std::string_view key) const {
    const auto bare = key.substr(std::string_view("fsdp_").size());
    return !map_.has(key) && map_.has(bare) ? bare : key;
  }
  bool boolean(std::string_view key, bool fallback) { return map_.boolean(named(key)).value_or(fallback); }
  template <std::size_t N>
  std::optional<std::size_t> word(std::string_view key, const std::array<std::string_view, N>& words) {
    return map_.word(named(key), words);
  }
  MapReader& map() { return map_; }

 private:
  MapReader& map_;
};

std::size_t wrap_policy(FsdpKeys& keys) {
  constexpr std::size_t kNoWrap = 2;
  return keys.word("fsdp_auto_wrap_policy", kPolicies).value_or(kNoWrap);
}

/// A text with commas between; null is as if it were not there.
std::optional<std::vector<std::string>> wrapped_classes(FsdpKeys& keys) {
  const auto key = keys.named("fsdp_transformer_layer_cls_to_wrap");
  const TextNode* node = keys.map().take(key);
  return node && node->kind != NodeKind::null ? keys.map().words_between_commas(key) : std::nullopt;
}

NamedPlan read_fsdp1(FsdpKeys& keys) {
  auto strategy = keys.word("fsdp_sharding_strategy", kStrategies);
  // Older files and accelerate's own environment say it under the key of FSDP2.
  if (!strategy && keys.map().has("fsdp_reshard_after_forward"))
    strategy = keys.word("fsdp_reshard_after_forward", kStrategies);
  NamedPlan plan = *find_plan(kStrategyPlans[strategy.value_or(0)]);
  auto& fsdp = std::get<Fsdp1>(plan.plan);
  fsdp.use_orig_params = keys.boolean("fsdp_use_orig_params", true);
  fsdp.cpu_offload = keys.boolean("fsdp_offload_params", false);
  fsdp.forward_prefetch = keys.boolean("fsdp_forward_prefetch", false);
  constexpr std::size_t kNoPrefetch = 2;
  fsdp.backward_prefetch =
      static_cast<BackwardPrefetch>(keys.word("fsdp_backward_prefetch", kPrefetches).value_or(kNoPrefetch));
  fsdp.auto_wrap_policy = static_cast<WrapPolicy>(wrap_policy(keys));
  const auto classes = wrapped_classes(keys);
  if (fsdp.auto_wrap_policy == WrapPolicy::transformer_based_wrap) fsdp.transformer_cls_names_to_wrap = classes;
  if (const auto least = keys.map().integer(keys.named("fsdp_min_num_params"), {1, std::int64_t{1} << 62}))
    fsdp.min_num_params = *least;
  return plan;
}

/// Without data parallel ranks of its own context parallelism shards over those that share a sequence.
void read_context_parallel(MapReader& map, Mesh& mesh) {
  mesh.cp = map.integer("parallelism_config_cp_size", {1, kMostRanks}).value_or(1);
  const auto strategy = map.choice<CpCommStrategy>("parallelism_config_cp_comm_strategy");
  if (mesh.cp > 1) mesh.cp_comm_strategy = strategy.value_or(mesh.cp_comm_strategy);
}

std::optional<NamedPlan> read_fsdp2(FsdpKeys& keys, MapReader& mesh, LaunchFile& out) {
  const std::optional<std::int64_t> ranks = out.world_size;
  const bool reshards = keys.boolean("fsdp_reshard_after_forward", true);
  const auto size = [&](std::string_view key) { return mesh.integer(key, {1, kMostRanks}).value_or(1); };
  const std::int64_t replicas = size("parallelism_config_dp_replicate_size");
  const std::int64_t shards = size("parallelism_config_dp_shard_size");
  const std::int64_t tp = size("parallelism_config_tp_size");
  if (tp > 1)
    mesh.refuse(
        "parallelism_config_tp_size", "not-supported",
        "layers that ranks share are planned as transformers' DistributedConfig shares them, not as accelerate does",
        "leave parallelism_config out and say it in the job file, cluster.mesh: {tp: " + std::to_string(tp) + "}" +
            (replicas > 1 ? ", with the plan fsdp2-hsdp" : ""));
  read_context_parallel(mesh, out.mesh);
  const std::int64_t named = replicas * shards * out.mesh.cp * tp;
  if ((replicas > 1 || out.mesh.cp > 1) && ranks && named != *ranks)
    mesh.refuse("parallelism_config_dp_shard_size", "mesh-does-not-divide",
                "dp_replicate_size x dp_shard_size x cp_size x tp_size is " + std::to_string(named) +
                    ", not num_processes, " + std::to_string(*ranks));
  NamedPlan plan = *find_plan(replicas > 1 ? "fsdp2-hsdp" : reshards ? "fsdp2" : "fsdp2-no-reshard");
  auto& fsdp = std::get<Fsdp2>(plan.plan);
  fsdp.reshard_after_forward = reshards;
  if (replicas > 1) fsdp.dp_shard_size = shards;
  fsdp.cpu_offload = keys.boolean("fsdp_offload_params", false);
  const auto policy = wrap_policy(keys);
  if (policy == 1) {
    keys.map().refuse(keys.named("fsdp_auto_wrap_policy"), "not-supported",
                      "SIZE_BASED_WRAP under FSDP2 is not planned", "set TRANSFORMER_BASED_WRAP");
    return std::nullopt;
  }
  const auto classes = wrapped_classes(keys);
  if (policy == 0) fsdp.transformer_cls_names_to_wrap = classes;
  fsdp.auto_wrap_policy = policy == 0 ? Fsdp2Wrap::transformer_based_wrap : Fsdp2Wrap::no_wrap;
  return plan;
}

std::optional<NamedPlan> read_fsdp(MapReader& root, LaunchFile& out) {
  MapReader map(root.take("fsdp_config"), root.place_of("fsdp_config"), root.findings());
  MapReader mesh(root.take("parallelism_config"), root.place_of("parallelism_config"), root.findings());
  FsdpKeys keys(map);
  out.ram_efficient_loading = keys.boolean("fsdp_cpu_ram_efficient_loading", true);
  out.activation_checkpointing = keys.boolean("fsdp_activation_checkpointing", false);
  constexpr std::array<std::string_view, 3> kStateDicts{"FULL_STATE_DICT", "SHARDED_STATE_DICT", "LOCAL_STATE_DICT"};
  if (const auto type = keys.word("fsdp_state_dict_type", kStateDicts); type && *type < 2)
    out.state_dict_type = *type == 0 ? StateDictType::full : StateDictType::sharded;
  constexpr std::array<std::string_view, 2> kVersions{"1", "2"};
  const bool second = keys.word("fsdp_version", kVersions) == 1U;
  auto plan = second ? read_fsdp2(keys, mesh, out) : std::optional{read_fsdp1(keys)};
  map.finish_foreign(kFsdpWithoutMemory);
  mesh.finish_foreign(std::array<std::string_view, 1>{"parallelism_config_cp_backend"});
  return plan;
}

/// DeepSpeedPlugin with no file of DeepSpeed's own (accelerate/utils/dataclasses.py).
std::optional<NamedPlan> read_inline_zero(MapReader& map) {
  const auto stage = map.integer("zero_stage", {0, 3}).value_or(2);
  if (stage == 0) {
    map.refuse("zero_stage", "not-supported", "stage 0 shards nothing: plan ddp");
    return std::nullopt;
  }
  NamedPlan plan = *find_plan("zero" + std::to_string(stage));
  auto& zero = std::get<Zero>(plan.plan);
  if (const auto device = map.choice<OffloadDevice>("offload_optimizer_device"))
    zero.offload_optimizer.device = *device;
  if (const auto device = map.choice<OffloadDevice>("offload_param_device")) zero.offload_param.device = *device;
  if (const auto most = map.number("gradient_clipping", {}))
    zero.gradient_clipping = *most > 0 ? Fillable<double>(*most) : Unsaid::left_out;
  if (const auto gathers = map.boolean("zero3_save_16bit_model"))
    zero.stage3_gather_16bit_weights_on_model_save = *gathers;
  map.take("gradient_accumulation_steps");
  return plan;
}

std::optional<NamedPlan> read_zero(MapReader& root, const std::string& file, const FileReader& files) {
  MapReader map(root.take("deepspeed_config"), root.place_of("deepspeed_config"), root.findings());
  std::optional<NamedPlan> plan;
  if (const auto name = map.text("deepspeed_config_file")) {
    plan = read_deepspeed_file(path_beside(file, *name), map.place_of("deepspeed_config_file"), files, root.findings());
  } else {
    plan = read_inline_zero(map);
  }
  map.finish_foreign(kDeepspeedWithoutMemory);
  return plan;
}

}  // namespace

std::optional<LaunchFile> read_accelerate(const TextNode& root, const std::string& file, const FileReader& files,
                                          Findings& findings) {
  MapReader map(&root, {"", {file, root.position.line, root.position.column}}, findings);
  LaunchFile out;
  if (const auto ranks = map.integer("num_processes", {-1, kMostRanks}); ranks && *ranks > 0) out.world_size = *ranks;
  out.num_machines = map.integer("num_machines", {1, kMostRanks});
  if (const auto precision = map.word("mixed_precision", kPrecisions)) out.mixed_precision = kPrecisions[*precision];
  if (map.boolean("use_cpu").value_or(false))
    map.refuse("use_cpu", "not-supported", "training on the CPU is not planned");
  constexpr std::array<std::string_view, 4> kTypes{"NO", "MULTI_GPU", "FSDP", "DEEPSPEED"};
  std::optional<NamedPlan> plan;
  const auto type = map.word("distributed_type", kTypes);
  if (type == 0U) plan = find_plan("single");
  if (type == 1U) plan = find_plan("ddp");
  if (type == 2U) plan = read_fsdp(map, out);
  if (type == 3U) plan = read_zero(map, file, files);
  map.finish_foreign(kAccelerateWithoutMemory);
  if (!plan) return std::nullopt;
  out.plan = *std::move(plan);
  return out;
}

}  // namespace qlp
