#include "report/models.h"

#include <nlohmann/json.hpp>

#include "config/model_catalogue.h"

namespace qlp {

std::string models_text() {
  std::string out;
  for (const auto name : model_names()) out += std::string{name} + "\n";
  return out;
}

std::string models_json() { return nlohmann::ordered_json(model_names()).dump(2) + "\n"; }

}  // namespace qlp
