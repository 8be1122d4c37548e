// A small validator for the keywords of JSON Schema that our own schemas use. A field that the schema does not describe
// is a finding too, and so is a keyword that this validator does not know.
#pragma once

#include <algorithm>
#include <regex.h>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace qlp {

class JsonSchema {
 public:
  explicit JsonSchema(nlohmann::json schema) : root_(std::move(schema)) {}

  /// What is wrong with the document, a line each: "/plans/0/fits: not a boolean".
  std::vector<std::string> findings(const nlohmann::json& document) const {
    std::vector<std::string> out;
    check(root_, document, "", out);
    return out;
  }

 private:
  using Json = nlohmann::json;

  static bool is_type(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "integer") return value.is_number_integer();
    return type == "number" && value.is_number();
  }

  /// POSIX, as GCC 12 warns about std::regex itself under sanitizers.
  static bool matches(const std::string& text, const std::string& pattern) {
    regex_t compiled;
    if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) return false;
    const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&compiled);
    return found;
  }

  void check_object(const Json& schema, const Json& value, const std::string& at, std::vector<std::string>& out) const {
    if (!value.is_object()) return;
    if (schema.contains("required"))
      for (const auto& key : schema["required"])
        if (!value.contains(key)) out.push_back(at + ": no " + key.get<std::string>());
    for (const auto& [key, member] : value.items()) {
      const std::string below = at + "/" + key;
      if (schema.contains("properties") && schema["properties"].contains(key)) {
        check(schema["properties"][key], member, below, out);
      } else if (schema.contains("additionalProperties")) {
        check(schema["additionalProperties"], member, below, out);
      } else if (schema.contains("properties")) {
        out.push_back(below + ": not described");
      }
    }
  }

  void check(const Json& schema, const Json& value, const std::string& at, std::vector<std::string>& out) const {
    static const std::set<std::string> kKnown{
        "$schema", "$id",        "$defs", "$ref",  "title",   "description",
        "type",    "properties", "items", "oneOf", "pattern", "additionalProperties",
        "minimum", "maximum",    "const", "enum",  "required"};
    for (const auto& [keyword, unused] : schema.items())
      if (!kKnown.contains(keyword)) out.push_back(at + ": keyword " + keyword);
    if (schema.contains("$ref")) {
      const Json::json_pointer target{schema["$ref"].get<std::string>().substr(1)};
      check(root_.at(target), value, at, out);
    }
    if (schema.contains("type") && !is_type(value, schema["type"])) {
      out.push_back(at + ": not of type " + schema["type"].get<std::string>());
      return;
    }
    if (schema.contains("const") && value != schema["const"]) out.push_back(at + ": not " + schema["const"].dump());
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      out.push_back(at + ": not one of " + schema["enum"].dump());
    if (schema.contains("minimum") && value < schema["minimum"]) out.push_back(at + ": too small");
    if (schema.contains("maximum") && value > schema["maximum"]) out.push_back(at + ": too large");
    if (schema.contains("pattern") && !matches(value.get<std::string>(), schema["pattern"].get<std::string>()))
      out.push_back(at + ": does not match " + schema["pattern"].get<std::string>());
    if (schema.contains("oneOf")) {
      int fitting = 0;
      for (const auto& choice : schema["oneOf"]) {
        std::vector<std::string> inner;
        check(choice, value, at, inner);
        fitting += inner.empty() ? 1 : 0;
      }
      if (fitting != 1) out.push_back(at + ": matches " + std::to_string(fitting) + " of the choices");
    }
    if (schema.contains("items") && value.is_array())
      for (std::size_t i = 0; i < value.size(); ++i)
        check(schema["items"], value[i], at + "/" + std::to_string(i), out);
    check_object(schema, value, at, out);
  }

  Json root_;
};

}  // namespace qlp
