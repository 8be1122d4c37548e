#include "config/model_catalogue.h"

#include <algorithm>

#include "base/text.h"

namespace qlp {

const CatalogueModel* find_model(std::string_view name) {
  const auto models = catalogue_models();
  const auto model = std::find_if(models.begin(), models.end(), [&](const CatalogueModel& m) {
    return m.name.size() == name.size() && edit_distance(m.name, name) == 0;
  });
  return model == models.end() ? nullptr : &*model;
}

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const auto& model : catalogue_models()) names.push_back(model.name);
  return names;
}

}  // namespace qlp
