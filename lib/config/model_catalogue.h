// The models that are known by name: configs/models/*.yaml, built into the program.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace qlp {

struct CatalogueModel {
  std::string_view name;  ///< "llama-3.1-8b", the file's name
  std::string_view yaml;  ///< its shapes, as read_shapes reads them
};

/// All of them, by name. (The definition is generated at build time, lib/config/embed_models.cmake.)
std::span<const CatalogueModel> catalogue_models();

/// None where no model has this name; capitals and the kind of separator do not count.
const CatalogueModel* find_model(std::string_view name);

/// Those of all of them, in order.
std::vector<std::string_view> model_names();

}  // namespace qlp
