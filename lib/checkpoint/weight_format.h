// Checkpoints that are stored quantized: what stands in the place of each weight, and what config.json says of it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "checkpoint/stored_tensor.h"
#include "model/quantization_spec.h"

namespace qlp {

/// Weights as they are.
struct PlainFormat {};
/// bitsandbytes 4-bit, as save_pretrained of a quantized model writes it.
struct FourBitWeights {
  QuantizationSpec quantization;
};
/// GPTQ and AWQ pack `bits` per weight into int32, with a scale per group of inputs.
struct PackedSpec {
  std::int64_t bits = 4;
  std::int64_t group_size = 128;
};
struct GptqFormat : PackedSpec {};
struct AwqFormat : PackedSpec {};
/// Two 4-bit floats a byte and a scale for every 32 inputs, of stacks of experts alone: gpt-oss.
struct Mxfp4Format {};

using WeightFormat = std::variant<PlainFormat, FourBitWeights, GptqFormat, AwqFormat, Mxfp4Format>;

/// "bnb-4bit"
std::string_view name_of(const WeightFormat& format);

/// The tensors with every weight that the format is for in it: of linear layers, or of stacks of experts. What a loader
/// reads on the host holds its real values: the quant_state of bitsandbytes (JSON), its code tables, the g_idx of GPTQ;
/// all else is zeros. Errors: "not-divisible" for layers that the format cannot pack, "nothing-to-quantize".
Result<std::vector<StoredTensor>> quantized(std::vector<StoredTensor> tensors, const WeightFormat& format);

/// The quantization_config of the model's config.json, as JSON; empty for plain weights.
std::string quantization_config(const WeightFormat& format);

}  // namespace qlp
