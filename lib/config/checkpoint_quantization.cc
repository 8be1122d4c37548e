#include "config/checkpoint_quantization.h"

#include <array>
#include <string>

#include "config/map_reader.h"

namespace qlp {
namespace {

constexpr std::array<NotSupported, 8> kMethods{{
    {"gptq", "its weights are buffers in the layout of another library, and FSDP cannot shard them"},
    {"awq", "its weights are buffers in the layout of another library, and FSDP cannot shard them"},
    {"fp8", "8-bit float weights are not planned yet; load the checkpoint dequantized"},
    {"fbgemm_fp8", "8-bit float weights are not planned yet; load the checkpoint dequantized"},
    {"compressed-tensors", "its packed weights are not planned yet"},
    {"modelopt", "its packed weights are not planned yet"},
    {"hqq", "its packed weights are not planned yet"},
    {"torchao", "its packed weights are not planned yet"},
}};

void refuse(const ConfigFields& fields, std::string_view key, const TextNode* at, const std::string& message) {
  fields.findings().error("not-supported", fields.place_of(key, at), message);
}

std::string reason_for(std::string_view method) {
  for (const auto& row : kMethods)
    if (row.word == method) return std::string(row.reason);
  return "only bitsandbytes 4-bit is planned";
}

DType dtype_or(const ConfigFields& block, std::string_view key, DType fallback) {
  const auto name = block.text(key);
  if (!name) return fallback;
  if (const auto dtype = dtype_from_name(*name)) return *dtype;
  block.findings().error("bad-value", block.place_of(key, block.find(key)), "'" + *name + "' is no dtype");
  return fallback;
}

/// Lists that leave more than the head unquantized change which layers are 4-bit.
void check_skipped(const ConfigFields& block) {
  const auto* skipped = block.find("llm_int8_skip_modules");
  if (!skipped) return;
  for (const auto& item : skipped->items)
    if (item->text != "lm_head")
      return refuse(block, "llm_int8_skip_modules", item.get(),
                    "not supported: leaving " + item->text + " unquantized (lm_head is left out anyway)");
}

}  // namespace

bool is_mxfp4(const ConfigFields& fields) {
  const auto* node = fields.find("quantization_config");
  return node && node->kind == NodeKind::map &&
         ConfigFields(*node, fields.findings()).text("quant_method").value_or("") == "mxfp4";
}

std::optional<QuantizationSpec> checkpoint_quantization(const ConfigFields& fields) {
  const auto* node = fields.find(FieldNames{"quantization_config", "compression_config"});
  if (!node) return std::nullopt;
  if (node->kind != NodeKind::map) {
    refuse(fields, "quantization_config", node, "expected a map, found " + describe(*node));
    return std::nullopt;
  }
  const ConfigFields block(*node, fields.findings());
  // Files are written with and without the leading underscore (transformers, quantization_config.py).
  const bool four_bit = block.boolean_or("load_in_4bit", false) || block.boolean_or("_load_in_4bit", false);
  const bool eight_bit = block.boolean_or("load_in_8bit", false) || block.boolean_or("_load_in_8bit", false);
  auto method = block.text("quant_method").value_or(four_bit || eight_bit ? "bitsandbytes" : "?");
  if (method.starts_with("bitsandbytes") && four_bit) method = "bitsandbytes";
  if (method != "bitsandbytes") {
    refuse(fields, "quantization_config", node,
           "a checkpoint quantized with " + method + " is not supported: " + reason_for(method));
    return std::nullopt;
  }
  if (!four_bit) {
    refuse(fields, "quantization_config", node, "8-bit bitsandbytes is not supported: only 4-bit is planned yet");
    return std::nullopt;
  }
  check_skipped(block);
  QuantizationSpec spec;
  spec.quant_type = block.text("bnb_4bit_quant_type").value_or("fp4") == "nf4" ? QuantType::nf4 : QuantType::fp4;
  spec.double_quant = block.boolean_or("bnb_4bit_use_double_quant", false);
  spec.quant_storage = dtype_or(block, "bnb_4bit_quant_storage", DType::uint8);
  spec.compute_dtype = dtype_or(block, "bnb_4bit_compute_dtype", DType::float32);
  return spec;
}

}  // namespace qlp
