// The words for a plan's options, one spelling for job files, reports and messages; those of the libraries that own
// them.
#pragma once

#include "base/enum_names.h"
#include "plan/sharding_plan.h"

namespace qlp {

template <>
inline constexpr std::array<EnumName<ShardingStrategy>, 5> kEnumNames<ShardingStrategy>{{
    {ShardingStrategy::full_shard, "full_shard"},
    {ShardingStrategy::shard_grad_op, "shard_grad_op"},
    {ShardingStrategy::no_shard, "no_shard"},
    {ShardingStrategy::hybrid_shard, "hybrid_shard"},
    {ShardingStrategy::hybrid_shard_zero2, "hybrid_shard_zero2"},
}};
template <>
inline constexpr std::array<EnumName<BackwardPrefetch>, 3> kEnumNames<BackwardPrefetch>{{
    {BackwardPrefetch::backward_pre, "backward_pre"},
    {BackwardPrefetch::backward_post, "backward_post"},
    {BackwardPrefetch::no_prefetch, "no_prefetch"},
}};
template <>
inline constexpr std::array<EnumName<WrapPolicy>, 3> kEnumNames<WrapPolicy>{{
    {WrapPolicy::transformer_based_wrap, "transformer_based_wrap"},
    {WrapPolicy::size_based_wrap, "size_based_wrap"},
    {WrapPolicy::no_wrap, "no_wrap"},
}};
template <>
inline constexpr std::array<EnumName<OffloadDevice>, 3> kEnumNames<OffloadDevice>{{
    {OffloadDevice::none, "none"},
    {OffloadDevice::cpu, "cpu"},
    {OffloadDevice::nvme, "nvme"},
}};
template <>
inline constexpr std::array<EnumName<ZeroOptimizerType>, 7> kEnumNames<ZeroOptimizerType>{{
    {ZeroOptimizerType::none, "none"},
    {ZeroOptimizerType::adam, "adam"},
    {ZeroOptimizerType::adamw, "adamw"},
    {ZeroOptimizerType::adagrad, "adagrad"},
    {ZeroOptimizerType::lion, "lion"},
    {ZeroOptimizerType::sgd, "SGD"},
    {ZeroOptimizerType::rmsprop, "RMSprop"},
}};
template <>
inline constexpr std::array<EnumName<Unsaid>, 2> kEnumNames<Unsaid>{{
    {Unsaid::automatic, "auto"},
    {Unsaid::left_out, "none"},
}};
template <>
inline constexpr std::array<EnumName<ZeroDType>, 3> kEnumNames<ZeroDType>{{
    {ZeroDType::fp16, "fp16"},
    {ZeroDType::bf16, "bf16"},
    {ZeroDType::fp32, "fp32"},
}};
template <>
inline constexpr std::array<EnumName<Fsdp2Ignored>, 4> kEnumNames<Fsdp2Ignored>{{
    {Fsdp2Ignored::none, "none"},
    {Fsdp2Ignored::quantized, "quantized"},
    {Fsdp2Ignored::base, "base"},
    {Fsdp2Ignored::adapter, "adapter"},
}};
template <>
inline constexpr std::array<EnumName<Fsdp2Wrap>, 2> kEnumNames<Fsdp2Wrap>{{
    {Fsdp2Wrap::transformer_based_wrap, "transformer_based_wrap"},
    {Fsdp2Wrap::no_wrap, "no_wrap"},
}};
template <>
inline constexpr std::array<EnumName<PolicyDType>, 4> kEnumNames<PolicyDType>{{
    {PolicyDType::none, "none"},
    {PolicyDType::float32, "float32"},
    {PolicyDType::bfloat16, "bfloat16"},
    {PolicyDType::float16, "float16"},
}};

}  // namespace qlp
