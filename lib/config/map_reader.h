// Reads the keys of one map strictly: each at most once, of the right type, in range, and no others.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/enum_names.h"
#include "config/findings.h"
#include "config/text_node.h"

namespace qlp {

/// What models are loaded as and adapters made in.
inline constexpr std::array<DType, 3> kFloatDTypes{DType::float32, DType::float16, DType::bfloat16};

struct IntegerRange {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

struct NumberRange {
  double least = 0;
  double most = 1e9;
};

/// A word that means something elsewhere but cannot be planned here, and why.
struct NotSupported {
  std::string_view word;
  std::string_view reason;
};

/// The functions come in threes. `x(key)`: the value, or none where the key is absent or wrong (a wrong one is an error
/// by then). `x_or(key, fallback)`: the fallback where the key is absent, which is noted as "default-used".
/// `require(key)` before `x(key)`: absence is an error.
class MapReader {
 public:
  /// `node` may be null: the section is absent, and so are all of its keys. `place` is that of the section.
  MapReader(const TextNode* node, KeyPlace place, Findings& findings);

  const KeyPlace& place() const { return place_; }
  /// The place of a key's value; that of the section where it is absent.
  KeyPlace place_of(std::string_view key) const;
  Findings& findings() { return findings_; }

  /// Marks the key as known. Null where it is absent.
  const TextNode* take(std::string_view key);
  /// Whether the file has the key.
  bool has(std::string_view key) const;
  /// Refuses the key where the file has it; it is not offered among the known ones.
  void forbid(std::string_view key, std::string message, std::string hint);
  void require(std::string_view key, std::string_view what);

  std::optional<std::int64_t> integer(std::string_view key, IntegerRange range);
  std::int64_t integer_or(std::string_view key, IntegerRange range, std::int64_t fallback);
  std::optional<double> number(std::string_view key, NumberRange range);
  double number_or(std::string_view key, NumberRange range, double fallback);
  std::optional<bool> boolean(std::string_view key);
  bool boolean_or(std::string_view key, bool fallback);
  std::optional<std::string> text(std::string_view key);
  std::optional<Bytes> size(std::string_view key);
  std::optional<Bytes> rate(std::string_view key);
  std::optional<double> percent(std::string_view key);
  std::optional<DType> dtype(std::string_view key, std::span<const DType> allowed);
  DType dtype_or(std::string_view key, std::span<const DType> allowed, DType fallback);
  /// A list of distinct texts.
  std::optional<std::vector<std::string>> words(std::string_view key);
  /// The same, of which one may stand alone.
  std::optional<std::vector<std::string>> word_or_words(std::string_view key);
  /// A text of names with commas between.
  std::optional<std::vector<std::string>> words_between_commas(std::string_view key);
  /// A list of distinct whole numbers, of which one may stand alone.
  std::optional<std::vector<std::int64_t>> integers(std::string_view key, IntegerRange range);

  /// One of these words, as its index.
  std::optional<std::size_t> word(std::string_view key, std::span<const std::string_view> allowed,
                                  std::span<const NotSupported> not_supported = {});
  template <NamedEnum E>
  std::optional<E> choice(std::string_view key, std::span<const NotSupported> not_supported = {}) {
    std::vector<std::string_view> allowed;
    for (const auto& row : kEnumNames<E>) allowed.push_back(row.name);
    const auto index = word(key, allowed, not_supported);
    return index ? std::optional{kEnumNames<E>[*index].value} : std::nullopt;
  }
  template <NamedEnum E>
  E choice_or(std::string_view key, E fallback, std::span<const NotSupported> not_supported = {}) {
    const auto value = choice<E>(key, not_supported);
    if (!has(key)) default_used(key, std::string(name_of(fallback)));
    return value.value_or(fallback);
  }

  void default_used(std::string_view key, const std::string& value);
  /// An error at the key's value.
  void refuse(std::string_view key, std::string code, std::string message, std::string hint = "");

  /// Call last: whatever the file has beyond the keys asked for is an error, and so is a key given twice.
  void finish(std::span<const NotSupported> not_supported = {});
  /// The same of a file in somebody else's format: what is not known is a warning, unless it is known not to matter,
  /// and what would matter is an error unless the file turns it off.
  void finish_foreign(std::span<const std::string_view> does_not_matter,
                      std::span<const NotSupported> not_supported = {});

 private:
  const TextNode* node_;
  KeyPlace place_;
  Findings& findings_;
  std::vector<std::string_view> known_;
  std::vector<std::string_view> forbidden_;
  bool broken_ = false;  ///< not a map: that is error enough
};

/// "training" + "seq_len" = "training.seq_len"
std::string join_path(std::string_view section, std::string_view key);

}  // namespace qlp
