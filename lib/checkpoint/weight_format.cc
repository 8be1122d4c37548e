#include "checkpoint/weight_format.h"

#include <array>
#include <cstring>

#include <nlohmann/json.hpp>

#include "base/overloaded.h"
#include "base/refusal.h"
#include "quant/code_tables.h"
#include "quant/quant_state.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kWordBits = 32;

std::string_view word_of(QuantType type) { return type == QuantType::nf4 ? "nf4" : "fp4"; }

template <class Range>
std::string bytes_of_values(const Range& values) {
  std::string bytes(values.size() * sizeof(values[0]), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// bitsandbytes functional.py, QuantState.as_dict(packed=True), and nn/modules.py, Linear4bit._save_to_state_dict.
void add_four_bit(const StoredTensor& weight, const QuantizationSpec& spec, std::vector<StoredTensor>& out) {
  const std::int64_t count = weight.shape.numel();
  const auto beside = [&](std::string_view leaf, DType dtype, Shape shape, std::string data = "") {
    out.push_back({weight.name + "." + std::string(leaf), dtype, shape, false, std::move(data)});
  };
  out.push_back({weight.name, spec.quant_storage, {packed_count(count, spec.quant_storage), 1}, false, ""});
  beside("absmax", spec.double_quant ? DType::uint8 : DType::float32, {absmax_count(count)});
  const auto codes = spec.quant_type == QuantType::nf4 ? nf4_codes() : fp4_codes();
  beside("quant_map", DType::float32, {static_cast<std::int64_t>(codes.size())}, bytes_of_values(codes));
  Json state{{"quant_type", word_of(spec.quant_type)},
             {"blocksize", FourBitFormat::kBlocksize},
             {"dtype", name_of(weight.dtype)},
             {"shape", std::vector<std::int64_t>(weight.shape.begin(), weight.shape.end())}};
  if (spec.double_quant) {
    const auto nested = dynamic_codes();
    beside("nested_absmax", DType::float32, {nested_absmax_count(count)});
    beside("nested_quant_map", DType::float32, {static_cast<std::int64_t>(nested.size())}, bytes_of_values(nested));
    state.update({{"nested_blocksize", FourBitFormat::kNestedBlocksize},
                  {"nested_dtype", name_of(DType::float32)},
                  {"nested_offset", 0.0}});
  }
  const std::string text = state.dump();
  beside("quant_state.bitsandbytes__" + std::string(word_of(spec.quant_type)), DType::uint8,
         {static_cast<std::int64_t>(text.size())}, text);
}

/// Which group each input is in, as quantizers without activation order write it.
std::string group_index(std::int64_t inputs, std::int64_t group_size) {
  std::vector<std::int32_t> index(static_cast<std::size_t>(inputs));
  for (std::size_t i = 0; i < index.size(); ++i)
    index[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) / group_size);
  return bytes_of_values(index);
}

struct PackedShapes {
  std::string prefix;
  std::int64_t in, out, groups, packed_out;
};
PackedShapes packed_shapes(const StoredTensor& weight, const PackedSpec& spec) {
  constexpr std::string_view kLeaf = "weight";
  const std::int64_t out = weight.shape[0], in = weight.shape[1];
  return {weight.name.substr(0, weight.name.size() - kLeaf.size()), in, out, in / spec.group_size,
          out * spec.bits / kWordBits};
}

/// auto_gptq nn_modules/qlinear/qlinear_cuda.py (0.7); gptqmodel has the same.
void add_gptq(const StoredTensor& weight, const PackedSpec& spec, std::vector<StoredTensor>& out) {
  const PackedShapes p = packed_shapes(weight, spec);
  out.push_back({p.prefix + "g_idx", DType::int32, {p.in}, false, group_index(p.in, spec.group_size)});
  out.push_back({p.prefix + "qweight", DType::int32, {p.in * spec.bits / kWordBits, p.out}, false, ""});
  out.push_back({p.prefix + "qzeros", DType::int32, {p.groups, p.packed_out}, false, ""});
  out.push_back({p.prefix + "scales", DType::float16, {p.groups, p.out}, false, ""});
}

/// awq/modules/linear/gemm.py (0.2).
void add_awq(const StoredTensor& weight, const PackedSpec& spec, std::vector<StoredTensor>& out) {
  const PackedShapes p = packed_shapes(weight, spec);
  out.push_back({p.prefix + "qweight", DType::int32, {p.in, p.packed_out}, false, ""});
  out.push_back({p.prefix + "qzeros", DType::int32, {p.groups, p.packed_out}, false, ""});
  out.push_back({p.prefix + "scales", DType::float16, {p.groups, p.out}, false, ""});
}

constexpr std::int64_t kMxfp4Inputs = 32;  // that share a scale
constexpr std::int64_t kMxfp4Bytes = 16;   // that they take

/// transformers integrations/mxfp4.py, Mxfp4GptOssExperts (4.57, 5.24): [experts, out, in / 32, 16] and
/// [experts, out, in / 32], of weights that are [experts, in, out] when they are not quantized.
void add_mxfp4(const StoredTensor& weight, std::vector<StoredTensor>& out) {
  const std::int64_t experts = weight.shape[0], in = weight.shape[1], rows = weight.shape[2];
  out.push_back({weight.name + "_blocks", DType::uint8, {experts, rows, in / kMxfp4Inputs, kMxfp4Bytes}, false, ""});
  out.push_back({weight.name + "_scales", DType::uint8, {experts, rows, in / kMxfp4Inputs}, false, ""});
}

bool is_stack_of_experts(const StoredTensor& tensor) {
  return tensor.shape.rank() == 3 && tensor.name.find(".experts.") != std::string::npos;
}

Diagnostic cannot_pack_mxfp4(const StoredTensor& weight) {
  return refusal("not-divisible",
                 weight.name + " " + to_string(weight.shape) + " cannot be packed as mxfp4: blocks of " +
                     std::to_string(kMxfp4Inputs) + " inputs must divide it",
                 "", "another --format");
}

Diagnostic cannot_pack(const StoredTensor& weight, const PackedSpec& spec, std::string_view format) {
  return refusal("not-divisible",
                 weight.name + " " + to_string(weight.shape) + " cannot be packed as " + std::string(format) +
                     ": groups of " + std::to_string(spec.group_size) + " inputs and " + std::to_string(kWordBits) +
                     "-bit words of outputs must divide it",
                 "", "another --group-size, or another --format");
}

bool packs(const StoredTensor& weight, const PackedSpec& spec) {
  return weight.shape[1] % spec.group_size == 0 && weight.shape[0] * spec.bits % kWordBits == 0 &&
         weight.shape[1] * spec.bits % kWordBits == 0;
}

Json packed_config(std::string_view method, const PackedSpec& spec) {
  return {{"quant_method", method}, {"bits", spec.bits}, {"group_size", spec.group_size}};
}

}  // namespace

std::string_view name_of(const WeightFormat& format) {
  constexpr std::array<std::string_view, 5> kNames{"plain", "bnb-4bit", "gptq", "awq", "mxfp4"};
  return kNames[format.index()];
}

Result<std::vector<StoredTensor>> quantized(std::vector<StoredTensor> tensors, const WeightFormat& format) {
  if (std::holds_alternative<PlainFormat>(format)) return tensors;
  const auto* packed = std::visit(Overloaded{[](const GptqFormat& f) -> const PackedSpec* { return &f; },
                                             [](const AwqFormat& f) -> const PackedSpec* { return &f; },
                                             [](const auto&) -> const PackedSpec* { return nullptr; }},
                                  format);
  const bool experts = std::holds_alternative<Mxfp4Format>(format);
  std::vector<StoredTensor> out;
  Diagnostics refusals;
  bool any = false;
  for (StoredTensor& tensor : tensors) {
    if (!(experts ? is_stack_of_experts(tensor) : tensor.linear)) {
      out.push_back(std::move(tensor));
      continue;
    }
    any = true;
    if (packed && !packs(tensor, *packed)) {
      refusals.push_back(cannot_pack(tensor, *packed, name_of(format)));
      continue;
    }
    if (experts && tensor.shape[1] % kMxfp4Inputs != 0) {
      refusals.push_back(cannot_pack_mxfp4(tensor));
      continue;
    }
    std::visit(Overloaded{[](const PlainFormat&) {},
                          [&](const FourBitWeights& f) { add_four_bit(tensor, f.quantization, out); },
                          [&](const GptqFormat& f) { add_gptq(tensor, f, out); },
                          [&](const AwqFormat& f) { add_awq(tensor, f, out); },
                          [&](const Mxfp4Format&) { add_mxfp4(tensor, out); }},
               format);
  }
  if (!any)
    refusals.push_back(refusal(
        "nothing-to-quantize",
        std::string("the model has no ") + (experts ? "stack of experts" : "linear layer") + " that could be quantized",
        "", "--format plain"));
  if (!refusals.empty()) return Unexpected{std::move(refusals)};
  return out;
}

std::string quantization_config(const WeightFormat& format) {
  return std::visit(
      Overloaded{[](const PlainFormat&) { return std::string(); },
                 // BitsAndBytesConfig.to_dict() (transformers utils/quantization_config.py, 4.57)
                 [](const FourBitWeights& f) {
                   const QuantizationSpec& q = f.quantization;
                   return Json{{"_load_in_4bit", true},
                               {"_load_in_8bit", false},
                               {"bnb_4bit_compute_dtype", name_of(q.compute_dtype)},
                               {"bnb_4bit_quant_storage", name_of(q.quant_storage)},
                               {"bnb_4bit_quant_type", word_of(q.quant_type)},
                               {"bnb_4bit_use_double_quant", q.double_quant},
                               {"llm_int8_enable_fp32_cpu_offload", false},
                               {"llm_int8_has_fp16_weight", false},
                               {"llm_int8_skip_modules", nullptr},
                               {"llm_int8_threshold", 6.0},
                               {"load_in_4bit", true},
                               {"load_in_8bit", false},
                               {"quant_method", "bitsandbytes"}}
                       .dump();
                 },
                 [](const GptqFormat& f) {
                   Json json = packed_config("gptq", f);
                   json.update({{"desc_act", false}, {"sym", true}, {"damp_percent", 0.01}});
                   json.update({{"true_sequential", true}, {"checkpoint_format", "gptq"}});
                   return json.dump();
                 },
                 [](const AwqFormat& f) {
                   Json json = packed_config("awq", f);
                   json.update({{"zero_point", true}, {"version", "gemm"}, {"modules_to_not_convert", nullptr}});
                   return json.dump();
                 },
                 // openai/gpt-oss-20b's config.json
                 [](const Mxfp4Format&) {
                   const std::vector<std::string> kept{"model.layers.*.self_attn", "model.layers.*.mlp.router",
                                                       "model.embed_tokens", "lm_head"};
                   return Json{{"quant_method", "mxfp4"}, {"modules_to_not_convert", kept}}.dump();
                 }},
      format);
}

}  // namespace qlp
