// How rotary frequencies are stretched, as config.json says it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "nn/rope_scaling.h"

namespace qlp {

/// `rope_scaling` with the numbers that its type reads; not of longrope, whose lists are told in other ways.
nlohmann::ordered_json rope_scaling_json(const RopeScaling& scaling);

}  // namespace qlp
