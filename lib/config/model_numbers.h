// Keys of a model that change what is computed, and no size: how norms, rotary frequencies and scores are scaled.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config_fields.h"
#include "config/map_reader.h"
#include "model/model_spec.h"

namespace qlp {

/// From a config.json.
void read_model_numbers(const ConfigFields& fields, ModelSpec& spec);
/// From a model that is spelled out.
void read_model_numbers(MapReader& map, ModelSpec& spec);
/// The keys that a job file needs for them, with values as YAML.
std::vector<std::pair<std::string_view, std::string>> model_number_lines(const ModelSpec& spec);

}  // namespace qlp
