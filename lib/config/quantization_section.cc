#include <array>

#include "config/job_sections.h"
#include "plan/job_names.h"

namespace qlp {
namespace {

constexpr std::array<DType, 6> kStorage{DType::uint8,   DType::int8,    DType::bfloat16,
                                        DType::float16, DType::float32, DType::float64};

constexpr std::array<NotSupported, 5> kOtherQuantTypes{{
    {"fp8", "8-bit float weights are not planned yet"},
    {"int4", "only the types of bitsandbytes are planned yet"},
    {"gptq", "what its kernels keep of the weights that they unpack differs by version of GPT-QModel; not planned yet"},
    {"awq", "what its kernels keep of the weights that they unpack differs by version of GPT-QModel; not planned yet"},
    {"mxfp4", "it cannot be trained as it is stored"},
}};

}  // namespace

std::optional<QuantizationSpec> read_quantization_section(const Section& where, DType load_dtype, Findings& findings) {
  if (!where.node || where.node->kind == NodeKind::null) return std::nullopt;
  MapReader map(where.node, where.place, findings);
  QuantizationSpec spec;
  spec.quant_type = map.choice_or("quant_type", QuantType::nf4, kOtherQuantTypes);
  if (spec.eight_bit()) {
    for (const std::string_view key : {"double_quant", "quant_storage", "compute_dtype"})
      map.forbid(key, "it is an option of 4-bit weights", "leave it out");
    spec.quant_storage = DType::int8, spec.compute_dtype = load_dtype;
    spec.llm_int8_threshold = map.number_or("llm_int8_threshold", {0, 1e6}, spec.llm_int8_threshold);
  } else {
    spec.double_quant = map.boolean_or("double_quant", false);
    spec.quant_storage = map.dtype_or("quant_storage", kStorage, DType::uint8);
    spec.compute_dtype = map.dtype_or("compute_dtype", kFloatDTypes, load_dtype);
    map.forbid("llm_int8_threshold", "it is an option of quant_type int8", "leave it out");
  }
  spec.prepare_kbit = map.boolean_or("prepare_kbit", false);
  spec.trl_bf16_cast = map.boolean_or("trl_bf16_cast", false);
  if (spec.trl_bf16_cast && !spec.prepare_kbit)
    map.refuse("trl_bf16_cast", "bad-value", "trl_bf16_cast without prepare_kbit: there is nothing to cast back",
               "set prepare_kbit to true, as TRL's SFTTrainer does");
  map.finish();
  return spec;
}

}  // namespace qlp
