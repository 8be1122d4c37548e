#include "config/config_fields.h"

#include <string>

namespace qlp {
namespace {

const TextNode* given(const TextNode& config, std::string_view name) {
  const auto* node = name.empty() ? nullptr : find(config, name);
  return node && node->kind != NodeKind::null ? node : nullptr;
}

}  // namespace

const TextNode* ConfigFields::find(const FieldNames& names) const {
  for (auto name : names)
    if (const auto* node = given(config_, name)) return node;
  return nullptr;
}

bool ConfigFields::is_null(std::string_view name) const {
  const auto* node = qlp::find(config_, name);
  return node && node->kind == NodeKind::null;
}

KeyPlace ConfigFields::place_of(std::string_view name, const TextNode* value) const {
  return {std::string(name), value ? value->position : config_.position};
}

void ConfigFields::note_default(std::string_view name, const std::string& value) const {
  findings_.note("class-default", place_of(name, nullptr), "not in the file; the model class has " + value);
}

void ConfigFields::check_agreement(const FieldNames& names) const {
  const TextNode* first = nullptr;
  std::string_view first_name;
  for (auto name : names) {
    const auto* node = given(config_, name);
    if (!node) continue;
    if (first && node->text != first->text)
      findings_.warning("aliases-disagree", place_of(name, node),
                        std::string(name) + " is " + node->text + ", but " + std::string(first_name) + " is " +
                            first->text + ": the latter is used");
    if (first) continue;
    first = node;
    first_name = name;
  }
}

std::optional<std::int64_t> ConfigFields::integer(const FieldNames& names, std::int64_t least,
                                                  std::int64_t most) const {
  const auto* node = find(names);
  if (!node) return std::nullopt;
  check_agreement(names);
  const auto value = integer_of(*node);
  if (!value) {
    findings_.error("wrong-type", place_of(names[0], node), value.error());
  } else if (*value < least || *value > most) {
    findings_.error(
        "out-of-range", place_of(names[0], node),
        std::to_string(*value) + " is out of range: expected " + std::to_string(least) + " to " + std::to_string(most));
  } else {
    return *value;
  }
  return std::nullopt;
}

std::int64_t ConfigFields::required(const FieldNames& names, std::int64_t most) const {
  if (!find(names))
    findings_.error("missing-key", place_of(names[0], nullptr),
                    std::string(names[0]) + " is missing, and is not guessed");
  return integer(names, 1, most).value_or(0);
}

std::int64_t ConfigFields::integer_or(const FieldNames& names, std::int64_t most, std::int64_t class_default) const {
  if (!find(names)) note_default(names[0], std::to_string(class_default));
  return integer(names, 1, most).value_or(class_default);
}

std::optional<double> ConfigFields::number(std::string_view name) const {
  const auto* node = find(name);
  if (!node) return std::nullopt;
  const auto value = number_of(*node);
  if (value) return *value;
  findings_.error("wrong-type", place_of(name, node), value.error());
  return std::nullopt;
}

bool ConfigFields::boolean_or(std::string_view name, bool class_default, bool note) const {
  const auto* node = find(name);
  if (!node) {
    if (note) note_default(name, class_default ? "true" : "false");
    return class_default;
  }
  const auto value = boolean_of(*node);
  if (value) return *value;
  findings_.error("wrong-type", place_of(name, node), value.error());
  return class_default;
}

std::optional<std::string> ConfigFields::text(std::string_view name) const {
  const auto* node = find(name);
  if (!node) return std::nullopt;
  const auto value = text_of(*node);
  if (value) return *value;
  findings_.error("wrong-type", place_of(name, node), value.error());
  return std::nullopt;
}

}  // namespace qlp
