#include "checkpoint/python_listing.h"

#include <nlohmann/json.hpp>

#include "base/refusal.h"

namespace qlp {
namespace {

using Json = nlohmann::ordered_json;

Unexpected<Diagnostics> bad(const std::string& why) {
  return {{refusal("bad-listing", "what Python printed is no list of tensors: " + why, "", "")}};
}

}  // namespace

Result<PythonListing> read_python_listing(std::string_view text, DType weights) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return bad("it is no JSON object");
  if (const auto error = json.find("error"); error != json.end() && error->is_string())
    return Unexpected{Diagnostics{refusal("python-failed", error->get<std::string>(), "", "")}};
  PythonListing out;
  try {
    out.transformers = json.at("transformers").get<std::string>();
    out.model_class = json.at("class").get<std::string>();
    for (const Json& row : json.at("tensors")) {
      StoredTensor tensor;
      tensor.name = row.at("name").get<std::string>();
      const auto dtype = dtype_from_name(row.at("dtype").get<std::string>());
      if (!dtype) return bad("the dtype of " + tensor.name + ", " + row.at("dtype").dump() + ", is not known");
      tensor.dtype = row.at("parameter").get<bool>() && is_floating(*dtype) ? weights : *dtype;
      const auto& shape = row.at("shape");
      if (shape.size() > Shape::kMaxRank) return bad(tensor.name + " has too many dimensions");
      for (const Json& dim : shape) tensor.shape.push_back(dim.get<std::int64_t>());
      tensor.linear = row.at("linear").get<bool>();
      out.tensors.push_back(std::move(tensor));
    }
  } catch (const Json::exception& error) {
    return bad(error.what());
  }
  if (out.tensors.empty()) return bad("it is empty");
  return out;
}

}  // namespace qlp
