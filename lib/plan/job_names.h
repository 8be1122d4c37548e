// The words for a job's choices, one spelling for job files, reports and messages; those of the libraries that own
// them.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "plan/job_spec.h"

namespace qlp {

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

/// The table of an enum's words, in the order of its values.
template <class E>
inline constexpr std::array<EnumName<E>, 0> kEnumNames{};

template <>
inline constexpr std::array<EnumName<Family>, 22> kEnumNames<Family>{{
    {Family::llama, "llama"},
    {Family::mistral, "mistral"},
    {Family::qwen2, "qwen2"},
    {Family::qwen3, "qwen3"},
    {Family::olmo2, "olmo2"},
    {Family::phi3, "phi3"},
    {Family::gemma2, "gemma2"},
    {Family::mixtral, "mixtral"},
    {Family::qwen3_moe, "qwen3_moe"},
    {Family::gemma3_text, "gemma3_text"},
    {Family::granite, "granite"},
    {Family::smollm3, "smollm3"},
    {Family::glm, "glm"},
    {Family::glm4, "glm4"},
    {Family::olmo3, "olmo3"},
    {Family::ministral, "ministral"},
    {Family::gemma, "gemma"},
    {Family::cohere, "cohere"},
    {Family::cohere2, "cohere2"},
    {Family::olmoe, "olmoe"},
    {Family::qwen2_moe, "qwen2_moe"},
    {Family::gpt_oss, "gpt_oss"},
}};
template <>
inline constexpr std::array<EnumName<RopeStretch>, 6> kEnumNames<RopeStretch>{{
    {RopeStretch::none, "default"},
    {RopeStretch::linear, "linear"},
    {RopeStretch::dynamic, "dynamic"},
    {RopeStretch::yarn, "yarn"},
    {RopeStretch::llama3, "llama3"},
    {RopeStretch::longrope, "longrope"},
}};
template <>
inline constexpr std::array<EnumName<RopeKind>, 2> kEnumNames<RopeKind>{{
    {RopeKind::standard, "standard"},
    {RopeKind::longrope, "longrope"},
}};
template <>
inline constexpr std::array<EnumName<QuantType>, 3> kEnumNames<QuantType>{{
    {QuantType::nf4, "nf4"},
    {QuantType::fp4, "fp4"},
    {QuantType::int8, "int8"},
}};
template <>
inline constexpr std::array<EnumName<AdapterBias>, 3> kEnumNames<AdapterBias>{{
    {AdapterBias::none, "none"},
    {AdapterBias::all, "all"},
    {AdapterBias::lora_only, "lora_only"},
}};
template <>
inline constexpr std::array<EnumName<Apollo::Scale>, 2> kEnumNames<Apollo::Scale>{{
    {Apollo::Scale::channel, "channel"},
    {Apollo::Scale::tensor, "tensor"},
}};
template <>
inline constexpr std::array<EnumName<Apollo::Side>, 4> kEnumNames<Apollo::Side>{{
    {Apollo::Side::std, "std"},
    {Apollo::Side::reverse_std, "reverse_std"},
    {Apollo::Side::left, "left"},
    {Apollo::Side::right, "right"},
}};
template <>
inline constexpr std::array<EnumName<GaLore::Side>, 5> kEnumNames<GaLore::Side>{{
    {GaLore::Side::std, "std"},
    {GaLore::Side::reverse_std, "reverse_std"},
    {GaLore::Side::left, "left"},
    {GaLore::Side::right, "right"},
    {GaLore::Side::full, "full"},
}};
template <>
inline constexpr std::array<EnumName<Attention>, 3> kEnumNames<Attention>{{
    {Attention::sdpa, "sdpa"},
    {Attention::eager, "eager"},
    {Attention::flash_attention_2, "flash_attention_2"},
}};
template <>
inline constexpr std::array<EnumName<CpCommStrategy>, 2> kEnumNames<CpCommStrategy>{{
    {CpCommStrategy::allgather, "allgather"},
    {CpCommStrategy::alltoall, "alltoall"},
}};
template <>
inline constexpr std::array<EnumName<StateDictType>, 3> kEnumNames<StateDictType>{{
    {StateDictType::full, "FULL_STATE_DICT"},
    {StateDictType::sharded, "SHARDED_STATE_DICT"},
    {StateDictType::automatic, "auto"},
}};
template <>
inline constexpr std::array<EnumName<Loss>, 3> kEnumNames<Loss>{{
    {Loss::plain, "plain"},
    {Loss::liger, "liger"},
    {Loss::chunked, "chunked"},
}};
template <>
inline constexpr std::array<EnumName<Loading>, 4> kEnumNames<Loading>{{
    {Loading::gpu, "gpu"},
    {Loading::cpu, "cpu"},
    {Loading::rank0, "rank0"},
    {Loading::automatic, "auto"},
}};
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

template <class E>
concept NamedEnum = !kEnumNames<E>.empty();

template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  for (const auto& row : kEnumNames<E>)
    if (row.value == value) return row.name;
  return {};
}

template <NamedEnum E>
constexpr std::optional<E> from_name(std::string_view name) {
  for (const auto& row : kEnumNames<E>)
    if (row.name == name) return row.value;
  return std::nullopt;
}

}  // namespace qlp
