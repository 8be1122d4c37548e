// The adapter that a job trains.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace qlp {

/// Which biases of the base are trained beside the adapter: none, all, those of layers that have one.
enum class AdapterBias : std::uint8_t { none, all, lora_only };

/// LoRA, in LoraConfig's words. Names are matched as PEFT does (model/target_matching.h).
struct AdapterSpec {
  std::int64_t r = 8;
  double lora_alpha = 8;
  double lora_dropout = 0.0;
  bool use_dora = false;
  bool use_rslora = false;
  bool all_linear = false;                   ///< target_modules: all-linear, or a list with that in it
  std::vector<std::string> target_modules;   ///< the list; empty where it is one text
  std::string target_pattern;                ///< target_modules as one text: a regex on the whole name; else empty
  std::vector<std::string> exclude_modules;  ///< names of modules that get none all the same
  std::string exclude_pattern;               ///< exclude_modules as one text: a regex on the whole name; else empty
  std::vector<std::int64_t> layers_to_transform;  ///< only layers of these numbers; empty: all
  std::vector<std::string> layers_pattern;        ///< names of the list that they are numbers in; empty: any
  std::vector<std::string> target_parameters;     ///< names of bare parameters (stacks of experts, routers)
  std::vector<std::string> modules_to_save;
  std::vector<std::int64_t> trainable_token_indices;  ///< rows of the table that are trained beside the adapter
  // By pattern of a module's name; the first that matches counts.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;
  AdapterBias bias = AdapterBias::none;
  bool lora_bias = false;  ///< B has a bias
  bool autocast_adapter_dtype = true;
  std::optional<DType> dtype;  ///< trainables are cast to it, as TRL does
  friend bool operator==(const AdapterSpec&, const AdapterSpec&) = default;
};

}  // namespace qlp
