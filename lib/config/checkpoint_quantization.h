// The quantization_config of a checkpoint that is stored quantized.
#pragma once

#include <optional>

#include "config/config_fields.h"
#include "plan/job_spec.h"

namespace qlp {

/// bitsandbytes 4-bit as it is written, with BitsAndBytesConfig's own defaults; none where there is no
/// quantization_config. Every other method is an error "not-supported" with the reason.
std::optional<QuantizationSpec> checkpoint_quantization(const ConfigFields& fields);

/// The checkpoint's experts are stored in MXFP4 (GPT-OSS).
bool is_mxfp4(const ConfigFields& fields);

}  // namespace qlp
