#include "config/plan_options.h"

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/text.h"
#include "plan/plan_names.h"

namespace qlp {
namespace {

constexpr std::string_view kNoOffload = "offload to the host is not planned yet";

/// Options of a runtime that cannot be planned here, and why.
template <class Plan>
inline constexpr std::array<NotSupported, 0> kNotPlanned{};
template <>
inline constexpr std::array<NotSupported, 3> kNotPlanned<Ddp>{{
    {"find_unused_parameters", "it changes no memory: leave it out"},
    {"static_graph", "not planned yet"},
    {"broadcast_buffers", "it changes no memory: leave it out"},
}};
template <>
inline constexpr std::array<NotSupported, 2> kNotPlanned<Fsdp1>{{
    {"activation_checkpointing", "training.gradient_checkpointing is what is planned"},
    {"ignored_modules", "every module is planned under FSDP"},
}};
template <>
inline constexpr std::array<NotSupported, 4> kNotPlanned<MixedPrecision>{{
    {"keep_low_precision_grads", "not planned, off is torch's default"},
    {"cast_forward_inputs", "not planned, on is torch's default"},
    {"cast_root_forward_inputs", "not planned, on is torch's default"},
    {"output_dtype", "it is an option of FSDP2"},
}};
template <>
inline constexpr std::array<NotSupported, 6> kNotPlanned<Fsdp2>{{
    {"pin_memory", "it is of what is offloaded, and needs cpu_offload: true"},
    {"dp_shard_size", "the plan fsdp2-hsdp has it"},
    {"offload_policy", "cpu_offload says it, with pin_memory"},
    {"use_orig_params", "it is an option of FSDP1"},
    {"limit_all_gathers", "it is an option of FSDP1"},
    {"dp_replicate_size", "it is world_size over dp_shard_size, which the plan fsdp2-hsdp has"},
}};

constexpr std::string_view kStage3 = "it is an option of stage 3";
template <>
inline constexpr std::array<NotSupported, 18> kNotPlanned<Zero>{{
    {"sub_group_size", kStage3},
    {"stage3_max_live_parameters", kStage3},
    {"stage3_max_reuse_distance", kStage3},
    {"stage3_prefetch_bucket_size", kStage3},
    {"stage3_param_persistence_threshold", kStage3},
    {"stage3_model_persistence_threshold", kStage3},
    {"stage3_module_granularity_threshold", kStage3},
    {"stage3_gather_16bit_weights_on_model_save", kStage3},
    {"zero_hpz_partition_size", kStage3},
    {"zero_quantized_weights", kStage3},
    {"zero_quantized_nontrainable_weights", kStage3},
    {"zero_quantized_gradients", kStage3},
    {"offload_param", kStage3},
    {"mics_shard_size", "MiCS is not planned"},
    {"zenflow", "ZenFlow is not planned"},
    {"stage3_use_all_reduce_for_fetch_params", kStage3},
    {"memory_efficient_linear", kStage3},
    {"ignore_unused_parameters", "it changes no memory: leave it out"},
}};
template <>
inline constexpr std::array<NotSupported, 4> kNotPlanned<ZeroOffloadOptimizer>{{
    {"nvme_path", "offload to NVMe is not planned"},
    {"pipeline_read", "offload to NVMe is not planned"},
    {"pipeline_write", "offload to NVMe is not planned"},
    {"super_offload", "SuperOffload is not planned"},
}};
template <>
inline constexpr std::array<NotSupported, 1> kNotPlanned<ZeroOffloadParam>{{
    {"nvme_path", "offload to NVMe is not planned"},
}};
template <>
inline constexpr std::array<NotSupported, 1> kNotPlanned<ZeroFp16>{{
    {"fp16_master_weights_and_grads", "master weights in float32 are planned, DeepSpeed's default"},
}};

constexpr std::string_view kAuto = "auto";
constexpr std::array kComputeDTypes{DType::bfloat16, DType::float16, DType::float32};

constexpr std::array kUnsaidWords{name_of(Unsaid::automatic), name_of(Unsaid::left_out)};

/// Why this is no number, or no switch.
template <class T>
std::optional<std::string> mistake(const TextNode& node) {
  const auto value = [&] {
    if constexpr (std::same_as<T, bool>)
      return boolean_of(node);
    else
      return number_of(node);
  }();
  return value ? std::nullopt : std::optional(value.error());
}

struct OptionReader {
  MapReader& map;

  void option(std::string_view key, bool& value) const { value = map.boolean_or(key, value); }
  void option(std::string_view key, std::int64_t& value, std::int64_t least, std::int64_t most) const {
    value = map.integer_or(key, {least, most}, value);
  }
  void option(std::string_view key, double& value, double least, double most) const {
    value = map.number_or(key, {least, most}, value);
  }
  void option(std::string_view key, ReshardAfterForward& value) const {
    const TextNode* node = map.take(key);
    if (node && integer_of(*node)) {
      if (const auto ranks = map.integer(key, {1, kMostRanks})) value = *ranks;
    } else if (node && !boolean_of(*node)) {
      map.refuse(key, "wrong-type", "expected true, false or a number of ranks, found " + describe(*node));
    } else if (const bool* fallback = std::get_if<bool>(&value)) {
      value = map.boolean_or(key, *fallback);
    }
  }
  template <NamedEnum E>
  void option(std::string_view key, E& value) const {
    value = map.choice_or(key, value);
  }
  void option(std::string_view key, std::vector<std::string>& value) const {
    value = map.word_or_words(key).value_or(value);
  }
  void option(std::string_view key, DType& value) const { value = map.dtype_or(key, kComputeDTypes, value); }
  template <class T, class... Range>
  void automatic(std::string_view key, std::optional<T>& value, Range... range) const {
    const TextNode* node = map.take(key);
    if (!node && !value) map.default_used(key, std::string(kAuto));
    if (node ? node->kind == NodeKind::scalar && node->text == kAuto : !value) {
      value.reset();
      return;
    }
    T given = value.value_or(T{});
    option(key, given, range...);
    value = given;
  }
  template <class T, class... Range>
  void fillable(std::string_view key, Fillable<T>& value, Range... range) const {
    const TextNode* node = map.take(key);
    if (!node) return map.default_used(key, std::string(kAuto));
    const auto unsaid = node->kind == NodeKind::scalar ? from_name<Unsaid>(node->text) : std::nullopt;
    if (!unsaid && node->kind == NodeKind::scalar)
      if (const auto error = mistake<T>(*node)) {
        const auto near = closest(node->text, kUnsaidWords);
        return map.refuse(key, "wrong-type", *error + "; auto and none are words here, too",
                          near ? "did you mean " + std::string(*near) + "?" : "");
      }
    T given{};
    if (!unsaid) option(key, given, range...);
    value = unsaid ? Fillable<T>(*unsaid) : Fillable<T>(given);
  }
  template <class Options>
  void section(std::string_view key, Options& options) const {
    MapReader inner(map.take(key), map.place_of(key), map.findings());
    visit_options(options, OptionReader{inner});
    inner.finish(kNotPlanned<Options>);
  }
  template <class T>
  void named(std::string_view key, const T&) const {
    map.forbid(key, "the name of the plan says it", "leave it out");
  }
};

/// What the name of a plan says, its options may not deny.
template <class Plan>
void check_name(MapReader& /*map*/, const Plan& /*named*/, const Plan& /*read*/) {}

void check_name(MapReader& map, const Fsdp2& named, const Fsdp2& read) {
  if (named.hybrid || named.ignored_params == Fsdp2Ignored::quantized) return;
  if (read.ignored_params == Fsdp2Ignored::quantized)
    map.refuse("ignored_params", "not-supported", "that is the plan fsdp2-local-base");
  const bool keeps = read.reshard_after_forward == ReshardAfterForward{false};
  if (keeps != (named.reshard_after_forward == ReshardAfterForward{false}))
    map.refuse("reshard_after_forward", "not-supported",
               std::string("that is the plan ") + (keeps ? "fsdp2-no-reshard" : "fsdp2"));
}

}  // namespace

void read_plan_options(MapReader& map, ShardingPlan& plan) {
  std::visit(
      [&]<class Plan>(Plan& options) {
        const Plan named = options;
        visit_options(options, OptionReader{map});
        check_name(map, named, options);
        map.finish(kNotPlanned<Plan>);
      },
      plan);
}

}  // namespace qlp
