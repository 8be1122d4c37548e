// Element types of tensors, with the names that PyTorch prints.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace qlp {

enum class DType : std::uint8_t { float32, float16, bfloat16, float64, int64, int32, int16, int8, uint8, boolean };

/// One row of the table of element types.
struct DTypeInfo {
  DType dtype;
  std::string_view name;         ///< as in `torch.bfloat16`, without the prefix
  std::uint32_t size;            ///< bytes per element
  bool floating;                 ///< has a gradient; can be sharded by FSDP1
  std::string_view safetensors;  ///< as in a safetensors header
};

inline constexpr std::array<DTypeInfo, 10> kDTypes{{
    {DType::float32, "float32", 4, true, "F32"},
    {DType::float16, "float16", 2, true, "F16"},
    {DType::bfloat16, "bfloat16", 2, true, "BF16"},
    {DType::float64, "float64", 8, true, "F64"},
    {DType::int64, "int64", 8, false, "I64"},
    {DType::int32, "int32", 4, false, "I32"},
    {DType::int16, "int16", 2, false, "I16"},
    {DType::int8, "int8", 1, false, "I8"},
    {DType::uint8, "uint8", 1, false, "U8"},
    {DType::boolean, "bool", 1, false, "BOOL"},
}};

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }
constexpr std::uint32_t size_of(DType dtype) { return info(dtype).size; }
constexpr std::string_view name_of(DType dtype) { return info(dtype).name; }
constexpr bool is_floating(DType dtype) { return info(dtype).floating; }

/// The dtype with this PyTorch name ("bfloat16", also "torch.bfloat16"), or none.
constexpr std::optional<DType> dtype_from_name(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (const auto& row : kDTypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace qlp
