// Which linear layers get an adapter (peft/tuners/tuners_utils.py, check_target_module_exists).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/adapter_spec.h"

namespace qlp {

/// Why a text is no regular expression that can be matched here; none if it is. RE2 takes linear time, and in return
/// has no look-around and no back references.
std::optional<std::string> error_in_pattern(const std::string& pattern);

/// True if the linear layer of this full name is adapted. `all-linear` is every layer but the head; a list matches
/// whole names or their last parts; one text is a regular expression on the full name.
bool is_target(const AdapterSpec& adapter, std::string_view name, bool is_head);

/// True if the module of this full name is trained as a copy (modules_to_save): it ends with one of the names.
bool is_saved_module(const AdapterSpec& adapter, std::string_view name);

/// The rank of the adapter on this layer (rank_pattern, else r).
std::int64_t rank_for(const AdapterSpec& adapter, std::string_view name);
/// What its product is multiplied by: lora_alpha over that rank, or over its root (use_rslora).
double scaling_for(const AdapterSpec& adapter, std::string_view name);

}  // namespace qlp
