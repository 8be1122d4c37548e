// The adapter that a job trains.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace qlp {

/// LoRA, in LoraConfig's words.
struct AdapterSpec {
  std::int64_t r = 8;
  double lora_alpha = 8;
  double lora_dropout = 0.0;
  bool use_dora = false;
  bool use_rslora = false;
  bool all_linear = false;                  ///< target_modules: all-linear
  std::vector<std::string> target_modules;  ///< names, matched as PEFT does; empty with all_linear
  std::string target_pattern;               ///< target_modules as one text: a regex on the whole name; else empty
  std::vector<std::string> modules_to_save;
  std::map<std::string, std::int64_t> rank_pattern;
  bool autocast_adapter_dtype = true;
  std::optional<DType> dtype;  ///< trainables are cast to it, as TRL does
  friend bool operator==(const AdapterSpec&, const AdapterSpec&) = default;
};

}  // namespace qlp
