// fully_shard (FSDP2): every parameter is cut by itself, gathered by groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/options.h"
#include "shard/fsdp2_options.h"

namespace qlp {

/// auto_wrap_policy, in accelerate's words.
enum class Fsdp2Wrap : std::uint8_t {
  transformer_based_wrap,  ///< every decoder layer is a unit, or the classes that are named
  no_wrap,                 ///< none is: all layers are gathered together
};

/// A dtype of a policy.
enum class PolicyDType : std::uint8_t { none, float32, bfloat16, float16 };

/// MixedPrecisionPolicy; a dtype that is left to accelerate is that of the trainer's mixed precision.
struct Fsdp2MixedPrecision {
  std::optional<PolicyDType> param_dtype, reduce_dtype, output_dtype;
  bool cast_forward_inputs = true;
  friend bool operator==(const Fsdp2MixedPrecision&, const Fsdp2MixedPrecision&) = default;
};

template <OptionsOf<Fsdp2MixedPrecision> P, class Visitor>
void visit_options(P& policy, Visitor&& visit) {
  visit.automatic("param_dtype", policy.param_dtype);
  visit.automatic("reduce_dtype", policy.reduce_dtype);
  visit.automatic("output_dtype", policy.output_dtype);
  visit.option("cast_forward_inputs", policy.cast_forward_inputs);
}

struct Fsdp2 {
  ReshardAfterForward reshard_after_forward = true;
  /// HSDP: a mesh of dp_replicate x dp_shard.
  bool hybrid = false;
  std::int64_t dp_shard_size = 0;  ///< of a hybrid plan, beside those of context parallelism; 0: those of a node
  Fsdp2Ignored ignored_params = Fsdp2Ignored::none;
  Fsdp2Wrap auto_wrap_policy = Fsdp2Wrap::transformer_based_wrap;
  /// Of transformer_based_wrap. None: that of the decoder layers.
  std::optional<std::vector<std::string>> transformer_cls_names_to_wrap = {};
  std::int64_t forward_prefetch = 0;   ///< layers ahead (set_modules_to_forward_prefetch); 0: torch's own order
  std::int64_t backward_prefetch = 0;  ///< the same of the backward pass
  Fsdp2MixedPrecision mp_policy = {};
  bool casts_to_float32 = false;  ///< every parameter, as accelerate did until 1.12
  bool cpu_offload = false;
  bool pin_memory = true;  ///< of what is offloaded
  friend bool operator==(const Fsdp2&, const Fsdp2&) = default;
};

inline constexpr std::int64_t kMostPrefetched = 1000;

template <OptionsOf<Fsdp2> P, class Visitor>
void visit_options(P& plan, Visitor&& visit) {
  visit.option("reshard_after_forward", plan.reshard_after_forward);
  visit.named("hybrid", plan.hybrid);
  if (plan.hybrid) visit.option("dp_shard_size", plan.dp_shard_size, 0, kMostRanks);
  if (!plan.hybrid && plan.ignored_params == Fsdp2Ignored::quantized)
    visit.named("ignored_params", plan.ignored_params);
  else
    visit.option("ignored_params", plan.ignored_params);
  visit.option("auto_wrap_policy", plan.auto_wrap_policy);
  visit.automatic("transformer_cls_names_to_wrap", plan.transformer_cls_names_to_wrap);
  visit.option("forward_prefetch", plan.forward_prefetch, 0, kMostPrefetched);
  visit.option("backward_prefetch", plan.backward_prefetch, 0, kMostPrefetched);
  visit.section("mp_policy", plan.mp_policy);
  if (plan.casts_to_float32) visit.named("casts_to_float32", plan.casts_to_float32);
  visit.option("cpu_offload", plan.cpu_offload);
  if (plan.cpu_offload) visit.option("pin_memory", plan.pin_memory);
}

}  // namespace qlp
