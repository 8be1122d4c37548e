// What transformers calls the classes of a family's modules (modeling_<model_type>.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/family.h"
#include "nn/module.h"

namespace qlp {

/// LlamaDecoderLayer for "DecoderLayer".
std::string class_name(Family family, std::string_view what);

/// The modules of this class, of those that can be units of FSDP here: decoder layers, attention, dense MLPs. None for
/// all other names.
std::optional<ModuleKind> kind_of_class(Family family, std::string_view name);

}  // namespace qlp
