// The fields of a config.json under all the names that they go by.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "config/findings.h"
#include "config/text_node.h"

namespace qlp {

/// A field's own name first, then the others (empty: no more).
using FieldNames = std::array<std::string_view, 6>;

/// Lenient reading: unknown keys do not matter, null counts as absent, the first of several names wins (a warning where
/// they disagree).
class ConfigFields {
 public:
  ConfigFields(const TextNode& config, Findings& findings) : config_(config), findings_(findings) {}

  /// The value, or null where it is absent or null.
  const TextNode* find(const FieldNames& names) const;
  const TextNode* find(std::string_view name) const { return find(FieldNames{name}); }
  /// Whether the key is there with the value null.
  bool is_null(std::string_view name) const;

  std::optional<std::int64_t> integer(const FieldNames& names, std::int64_t least, std::int64_t most) const;
  /// The same; its absence is an error.
  std::int64_t required(const FieldNames& names, std::int64_t most) const;
  /// The same; its absence is filled by what the model class has, with a note.
  std::int64_t integer_or(const FieldNames& names, std::int64_t most, std::int64_t class_default) const;
  std::optional<double> number(std::string_view name) const;
  bool boolean_or(std::string_view name, bool class_default, bool note = false) const;
  std::optional<std::string> text(std::string_view name) const;

  void note_default(std::string_view name, const std::string& value) const;
  KeyPlace place_of(std::string_view name, const TextNode* value) const;
  Findings& findings() const { return findings_; }
  const TextNode& config() const { return config_; }

 private:
  void check_agreement(const FieldNames& names) const;

  const TextNode& config_;
  Findings& findings_;
};

}  // namespace qlp
