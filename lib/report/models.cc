#include "report/models.h"

#include <nlohmann/json.hpp>

#include "config/model_catalogue.h"
#include "report/json_parts.h"

namespace qlp {

std::string models_text() {
  std::string out;
  for (const auto name : model_names()) out += std::string{name} + "\n";
  return out;
}

std::string models_json() { return document_text(model_names()); }

}  // namespace qlp
