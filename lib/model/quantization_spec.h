// How a job quantizes the base model.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace qlp {

enum class QuantType : std::uint8_t { nf4, fp4, int8 };

/// bitsandbytes 4-bit or 8-bit, in BitsAndBytesConfig's words.
struct QuantizationSpec {
  QuantType quant_type = QuantType::nf4;
  bool double_quant = false;
  DType quant_storage = DType::uint8;  ///< of int8 weights int8
  DType compute_dtype = DType::bfloat16;
  bool prepare_kbit = false;  ///< peft.prepare_model_for_kbit_training is called
  /// And after it TRL's peft_module_casting_to_bf16: embedding and head become bfloat16 again (trl/trainer/utils.py,
  /// 0.13).
  bool trl_bf16_cast = false;
  double llm_int8_threshold = 6.0;  ///< of int8: inputs from it on are outliers
  bool eight_bit() const { return quant_type == QuantType::int8; }
  friend bool operator==(const QuantizationSpec&, const QuantizationSpec&) = default;
};

}  // namespace qlp
