// The words for a job's choices (those of its plans: plan/plan_names.h), one spelling for job files, reports and
// messages; those of the libraries that own them.
#pragma once

#include "base/enum_names.h"
#include "plan/job_spec.h"

namespace qlp {

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
inline constexpr std::array<EnumName<Apollo::Projector>, 2> kEnumNames<Apollo::Projector>{{
    {Apollo::Projector::random, "random"},
    {Apollo::Projector::svd, "svd"},
}};
template <>
inline constexpr std::array<EnumName<ProjectionSide>, 5> kEnumNames<ProjectionSide>{{
    {ProjectionSide::std, "std"},
    {ProjectionSide::reverse_std, "reverse_std"},
    {ProjectionSide::left, "left"},
    {ProjectionSide::right, "right"},
    {ProjectionSide::full, "full"},
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

}  // namespace qlp
